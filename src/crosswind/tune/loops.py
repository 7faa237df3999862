"""Loops over trials: one after another, in threads, or as coroutines."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, SupportsFloat

from crosswind.cli.verbs.tune.paused import once_resumed
from crosswind.data.schema.errors import ConflictError, InvalidInputError
from crosswind.tune.trials import Trial, TrialInfeasible, TrialPruned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from crosswind.tune.trials import Value

STATES = {TrialPruned: "pruned", TrialInfeasible: "infeasible"}

logger = logging.getLogger("crosswind")


class Trials(Protocol):
    """The part of a study that a loop needs."""

    def ask(self) -> Trial | None:
        """Return a trial to evaluate, None once there are no more."""
        ...

    def tell(self, trial: Trial, value: Value | None = None, *, state: str | None = None, reason: str = "") -> None:
        """Report what came of a trial."""
        ...

    def release(self, trial: Trial) -> None:
        """Give a trial back unmeasured."""
        ...


@dataclass
class Loop:
    """The trials that one call may still evaluate; for several threads.

    `error` is the exception that ended it.
    """

    study: Trials
    left: float
    ends: float
    catch: tuple[type[Exception], ...]
    error: BaseException | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: set[Trial] = field(default_factory=set)

    @classmethod
    def of(cls, study: Trials, trials: int | None, timeout: float | None, catch: tuple[type[Exception], ...]) -> Loop:
        """Return the loop of a call. Raises: InvalidInputError for a number of trials below 1."""
        if trials is not None and trials < 1:
            raise InvalidInputError(f"trials is {trials}, expected 1 or more")
        ends = math.inf if timeout is None else time.monotonic() + timeout
        return cls(study, math.inf if trials is None else trials, ends, catch)

    def following(self) -> Trial | None:
        """Return the next trial, None at the end."""
        with self._lock:
            if self.left <= 0 or not self._goes_on():
                return None
            self.left -= 1
        trial = once_resumed(self.study.ask, goes_on=self._goes_on, say=lambda reason: logger.warning("%s", reason))
        with self._lock:
            if trial is not None:
                self._running.add(trial)
            return trial

    def _goes_on(self) -> bool:
        return self.error is None and time.monotonic() < self.ends

    def tell(self, trial: Trial, value: Value) -> None:
        """Report what the objective returned. Raises: InvalidInputError for what is no number; not for NaN."""
        with self._lock:
            is_ours = trial in self._running
            self._running.discard(trial)
        if not is_ours:
            return
        if not is_value(value):
            self.study.tell(trial, state="failed", reason=f"the objective returned {value!r:.80}")
            raise InvalidInputError(f"the objective returned {value!r:.80}, expected a number or a mapping of outcomes")
        try:
            self.study.tell(trial, value)
        except InvalidInputError as error:
            logger.warning("trial %s failed: %s", trial.trial_id, error)
            self._fail(trial, error)
        except ConflictError as error:
            logger.warning("not reported: %s", error)

    def _fail(self, trial: Trial, error: InvalidInputError) -> None:
        try:
            self.study.tell(trial, state="failed", reason=str(error))
        except InvalidInputError:  # a parameter that the study has with other values
            self.study.release(trial)
            raise

    def fail(self, trial: Trial, error: BaseException) -> None:
        """Report the exception of an objective; raise it again unless it may be passed over."""
        with self._lock:
            is_ours = trial in self._running
            self._running.discard(trial)
        if not is_ours:
            return
        if not isinstance(error, Exception):  # Ctrl-C and the like say nothing about the configuration
            self.study.release(trial)
            raise error
        state = next((state for kind, state in STATES.items() if isinstance(error, kind)), "failed")
        self._end(trial, state, last_line(error) if state == "failed" else str(error) or trial.why_stop)
        if state == "failed" and not isinstance(error, self.catch):
            raise error

    def _end(self, trial: Trial, state: str, reason: str) -> None:
        try:
            self.study.tell(trial, state=state, reason=reason)
        except ConflictError as error:
            logger.warning("not reported: %s", error)

    def stop(self, error: BaseException) -> None:
        """Begin nothing more; the first error is kept."""
        with self._lock:
            self.error = self.error or error

    def give_back(self) -> None:
        """Give the running trials back; what their threads report later is dropped."""
        with self._lock:
            running, self._running = self._running, set()
        for trial in running:
            self.study.release(trial)


def run_loop(loop: Loop, objective: Callable[[Trial], Value], parallel: int) -> None:
    """Evaluate the loop's trials, in this thread where one at a time is enough."""
    _check_parallel(parallel)
    if parallel == 1:
        _work(loop, objective)
        return
    threads = [threading.Thread(target=_guarded, args=(loop, objective), daemon=True) for _ in range(parallel)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException as error:
        loop.stop(error)
        loop.give_back()
        raise
    if loop.error is not None:
        raise loop.error


async def run_loop_async(loop: Loop, objective: Callable[[Trial], Awaitable[Value]], parallel: int) -> None:
    """Evaluate the loop's trials by a coroutine function; asking and telling run in threads."""
    _check_parallel(parallel)
    workers = [asyncio.create_task(_work_async(loop, objective)) for _ in range(parallel)]
    try:
        await asyncio.gather(*workers)
    except BaseException as error:
        loop.stop(error)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        raise


def last_line(error: BaseException) -> str:
    """Return an exception as the last line of its traceback has it."""
    return traceback.format_exception_only(error)[-1].strip()


def is_value(value: object) -> bool:
    """Return whether it is something that an objective may return."""
    return isinstance(value, Mapping | SupportsFloat)


def _check_parallel(parallel: int) -> None:
    if parallel < 1:
        raise InvalidInputError(f"parallel is {parallel}, expected 1 or more")


def _guarded(loop: Loop, objective: Callable[[Trial], Value]) -> None:
    try:
        _work(loop, objective)
    except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
        loop.stop(error)


def _work(loop: Loop, objective: Callable[[Trial], Value]) -> None:
    while (trial := loop.following()) is not None:
        try:
            value = objective(trial)
        except BaseException as error:  # noqa: BLE001 - it is raised again
            loop.fail(trial, error)
        else:
            loop.tell(trial, value)


async def _work_async(loop: Loop, objective: Callable[[Trial], Awaitable[Value]]) -> None:
    while (trial := await asyncio.to_thread(loop.following)) is not None:
        try:
            value = await objective(trial)
        except BaseException as error:  # noqa: BLE001 - it is raised again
            loop.fail(trial, error)
        else:
            await asyncio.to_thread(loop.tell, trial, value)
