"""The loop of a framework that calls us back: steps, and the phases between them."""

import atexit
import inspect
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.probe.adapters import ADAPTERS
from crosswind.ingest.probe.run import RunProbe

UNENDED = "the training has not come to its end"


class CallbackLoop:
    """Steps of a framework's loop; the run is the caller's, or one that is opened for every training.

    Raises: TypeError for an unknown option of a run.
    """

    def __init__(self, run: RunProbe | None, **options: Any) -> None:
        inspect.signature(RunProbe).bind(**options)  # here, not when training begins
        self._given = self._run = run
        self._options = options
        self._phase: AbstractContextManager[None] | None = None
        self._undo: list[Callable[[], None]] = []
        self._is_begun = self._is_waiting = False
        self.is_off = False

    def begin(self, *models: Any) -> None:
        """Begin the training with the wait for the first batch, and watch those of the models that can be watched.

        An earlier one that never ended has failed: not every framework reports that.
        """
        self.end(UnavailableError(UNENDED))
        if self._given is None:
            self._run = RunProbe(**self._options).__enter__()
            atexit.register(self._end_unended, os.getpid())
        self._is_begun = True
        for model in models:
            if any(adapter.matches(model) for adapter in ADAPTERS):
                self.watch(model)
        self._begin_step()

    def batch_arrived(self) -> None:
        """Note that the batch of the step is there."""
        if self._run:
            self._run.batch_arrived()
        self._is_waiting = False

    def next_step(self) -> None:
        """End a step, and begin the wait for the next batch."""
        self.leave_phase()
        if self._run:
            self._run.end_step()
        self._begin_step()

    def begin_anew(self) -> None:
        """Begin the step again: the time since the last one was no wait for a batch, and is part of no step."""
        if self._is_waiting and self._run:
            self._run.abandon_step()
            self._begin_step()

    def record(self, **values: Any) -> None:
        """Record values of this step."""
        if self._run:
            self._run.record(**values)

    def watch(self, thing: Any) -> None:
        """Report its collectives."""
        if self._run:
            self._run.watch(thing)

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Return a context whose time is `checkpoint` or `other`."""
        return self._run.phase(name) if self._run else nullcontext()

    def enter_phase(self, name: str) -> None:
        """Count the time from now on as `checkpoint` or `other`, until `leave_phase`."""
        self.leave_phase()
        self._phase = self.phase(name)
        self._phase.__enter__()

    def leave_phase(self) -> None:
        """Count the time as the step's own again."""
        phase, self._phase = self._phase, None
        if phase:
            phase.__exit__(None, None, None)

    def on_end(self, undo: Callable[[], None]) -> None:
        """Do something once, when the training is over."""
        self._undo.append(undo)

    def switch_off(self) -> None:
        """Record nothing any more until this training is over."""
        self.is_off = True
        self._abandon()

    def end(self, error: BaseException | None = None) -> None:
        """End the training; a step that was begun is dropped."""
        if not self._is_begun:
            return
        self._abandon()
        self._is_begun = self.is_off = False
        if self._given is None and self._run:
            atexit.unregister(self._end_unended)
            run, self._run = self._run, None
            run.__exit__(type(error) if error else None, error, None)
        while self._undo:
            self._undo.pop()()

    def _end_unended(self, pid: int) -> None:
        if os.getpid() == pid:
            self.end(UnavailableError(UNENDED))

    def _begin_step(self) -> None:
        if self._run:
            self._run.begin_step()
        self._is_waiting = True

    def _abandon(self) -> None:
        self.leave_phase()
        if self._run:
            self._run.abandon_step()
        self._is_waiting = False
