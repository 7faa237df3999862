"""A training loop recorded without the script's help, from the calls of PyTorch in it.

A step ends with the optimizer's and the next one begins there. The time until the next batch is requested
(logging, a checkpoint) counts as `other`, the time until that batch is there as `input`. The end of the data ends the
series of steps: an evaluation between two epochs is in none, nor are batches that were fetched for no step. Where no
optimizer of PyTorch's steps, the collectives that repeat are the steps.
"""

import atexit
import functools
import logging
import multiprocessing.util
import os
import sys
import threading
import weakref
from collections.abc import Callable, Hashable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from crosswind.ingest.injected.leaving import note_end
from crosswind.ingest.injected.repetition import Repetition
from crosswind.ingest.probe.place import is_numbered
from crosswind.ingest.probe.run import RunProbe

LEAST_PASSES, LEAST_CALLS = 16, 64  # of DDP models, which know their step, and calls of Python, which are anything
PROBE_THREAD = "crosswind-probe"  # every open probe has one
LEFT_OUT = (
    "crosswind does not record this fork, which nothing numbers: "
    "call torch.distributed.init_process_group in it, or start the ranks by torchrun"
)
logger = logging.getLogger("crosswind")
Arguments = ParamSpec("Arguments")


def _noted(
    note: Callable[Concatenate["WatchedLoop", Arguments], None],
) -> Callable[Concatenate["WatchedLoop", Arguments], None]:
    """Wrap a method: called on the main thread alone, it raises nothing, and stops if the script has a probe."""

    @functools.wraps(note)
    def noted(loop: "WatchedLoop", /, *arguments: Arguments.args, **options: Arguments.kwargs) -> None:
        if loop.is_over or threading.get_ident() != loop.thread or not loop.is_of_this_process():
            return
        try:
            if loop.is_recorded_by_script():
                loop.give_way()
            else:
                note(loop, *arguments, **options)
        except Exception as error:  # noqa: BLE001 - no error of ours may stop the user's training
            loop.is_over = True
            logger.warning("crosswind stops watching this loop: %s", error)

    return noted


class WatchedLoop:
    """The steps of this process's main thread, recorded once it trains; the script's own `crosswind.run` has priority.

    Args:
        learns: whether the program trains now, rather than evaluates.
        mark: called once this process trains.
    """

    def __init__(self, *, learns: Callable[[], bool], mark: Callable[[], None]) -> None:
        self.pid = os.getpid()
        self.thread = threading.main_thread().ident
        self.is_over = False
        self._learns = learns
        self._mark = mark
        self._probe: RunProbe | None = None
        self._own_thread: threading.Thread | None = None
        self._optimizer: Callable[[], Any] = lambda: None
        self._models: list[weakref.ref[Any]] = []
        self._has_models = self._is_training_watched = False
        self.has_optimizer = False  # one of PyTorch's was made
        self._passes, self._calls = Repetition(LEAST_PASSES), Repetition(LEAST_CALLS)
        self._gap = ExitStack()  # between a step and the next demand for data
        self._is_step_open = self._is_waiting = self._is_in_gap = False
        self._batches = 0
        self._is_past_data = self._is_repeating = False
        self._fetches_every_step = True
        self._exits: list[BaseException] = []
        self._is_fork = False

    def begin_fork(self) -> None:
        """Begin anew in a fork of this process; a fork of a rank is none."""
        self.is_over = self.is_over or self._probe is not None or _is_in_group()
        self._is_fork, self.thread = True, threading.get_ident()

    def is_of_this_process(self) -> bool:
        """Return whether this process is the one to be watched: a fork is once it joins a process group of its own."""
        if self.pid != os.getpid() and self._is_fork and _is_in_group():
            self.pid = os.getpid()
        return self.pid == os.getpid()

    def say_if_left_out(self) -> None:
        """Say what a fork needs that trains and that nothing numbers; whatever is numbered in it is its parent."""
        if self._is_fork and not self.is_over and threading.get_ident() == self.thread and self.pid != os.getpid():
            self.is_over = True
            if not is_numbered():
                logger.warning(LEFT_OUT)

    def is_recorded_by_script(self) -> bool:
        """Return whether the script itself has entered `crosswind.run`."""
        threads = (thread for thread in threading.enumerate() if thread.name == PROBE_THREAD)
        return any(thread is not self._own_thread for thread in threads)

    def give_way(self) -> None:
        """Leave the recording to the script from now on."""
        self.is_over = True
        if probe := self._probe:
            probe.abandon_step()
            probe.__exit__(None, None, None)

    @property
    def counts_calls(self) -> bool:
        """Return whether only the collectives that Python launches can show the steps.

        Where there is an optimizer that has not stepped yet, layers of one size are no steps.
        """
        return not (self.is_over or self._has_models or self.has_optimizer)

    @_noted
    def data_requested(self) -> None:
        """Note that the loop requests data, or begins to."""
        if not self._learns():
            return
        self._leave_gap()
        if self._is_past_data:  # an epoch later: nothing fetched or computed since belongs to a step
            self._opened().abandon_step()
            self._is_past_data = self._is_step_open = False
        if not self._is_step_open:
            self._begin()
        self._is_waiting = True

    @_noted
    def loader_ready(self) -> None:
        """Note that the loader is ready, and no data were requested yet."""
        if self._is_waiting and self._is_step_open and not self._batches:
            self._enter_gap()
        self._is_waiting = False

    @_noted
    def data_arrived(self) -> None:
        """Note that the data are there."""
        if not self._is_waiting:
            return
        self._is_waiting = False
        if not self._batches:
            self._opened().batch_arrived()
        self._batches += 1
        self._watch_models()

    @_noted
    def data_ended(self) -> None:
        """Note that there are no more data. A loop that fetches one batch ahead still has a last step to do."""
        if not self._is_waiting:
            return
        self._is_waiting = False
        self._is_past_data = True
        if not self._batches:
            self._opened().abandon_step()
            self._begin()
            self._opened().batch_arrived()

    @_noted
    def optimizer_stepped(self, optimizer: object) -> None:
        """Note that an optimizer has made its step; of several, the first one's count."""
        chosen = self._optimizer()
        if chosen is None:
            self._optimizer = weakref.ref(optimizer)
        elif chosen is not optimizer:
            return
        probe = self._opened()
        self._exits.clear()  # somebody caught them
        if self._is_in_gap:  # no data were requested: many steps a batch
            self._fetches_every_step = False
            self._leave_gap()
        probe.end_step()
        self._watch_models()
        self._watch_training(optimizer)
        has_fetched = self._batches > 0
        self._begin()
        if has_fetched and self._fetches_every_step and not self._is_past_data:
            self._enter_gap()
        else:
            probe.batch_arrived()

    @_noted
    def model_built(self, model: object) -> None:
        """Note a data-parallel model; it is watched once it trains, when the script has set it up."""
        self._models.append(weakref.ref(model))
        self._has_models = True

    @_noted
    def forward_begun(self, model: object) -> None:
        """Note that a data-parallel model begins a pass whose gradients will be reduced."""
        if self._optimizer() is None and self._learns() and self._passes.ends_step(id(model)):
            self._repeated()

    @_noted
    def collective_launched(self, what: Callable[[], Hashable]) -> None:
        """Note that Python code launches a collective, which `what` tells from others; ask `counts_calls` first."""
        if self._learns() and self._calls.ends_step(what()):
            self._repeated()

    def _repeated(self) -> None:
        """End a step where the collectives of the one before ended."""
        probe = self._opened()
        if self._is_repeating and self._is_step_open:
            self._leave_gap()
            probe.end_step()
        else:  # it is only now that we know where steps end
            probe.abandon_step()
        self._is_repeating = True
        self._begin()
        probe.batch_arrived()
        self._batches = 1  # what is fetched from now on is part of the step
        self._watch_models()
        if not self._is_training_watched:
            self._is_training_watched = True
            if not self._has_models:
                probe.watch_training(())

    def _begin(self) -> None:
        self._opened().begin_step()
        self._is_step_open, self._batches = True, 0

    def _enter_gap(self) -> None:
        self._gap.enter_context(self._opened().phase("other"))
        self._is_in_gap = True

    def _leave_gap(self) -> None:
        self._gap.close()
        self._is_in_gap = False

    def _watch_models(self) -> None:
        while self._models:
            if (model := self._models.pop()()) is not None:
                self._opened().watch(model)

    def _watch_training(self, optimizer: Any) -> None:
        """Watch from the second step on, if no DDP model reports, the device and what Python launches, as FSDP does."""
        if self._is_training_watched:
            return
        self._is_training_watched = True
        if not self._has_models:
            groups = getattr(optimizer, "param_groups", ())
            self._opened().watch_training(parameter for group in groups for parameter in group["params"])

    def _opened(self) -> RunProbe:
        if self._probe is None:
            self._mark()
            before = set(threading.enumerate())
            self._probe = RunProbe().__enter__()
            news = set(threading.enumerate()) - before
            self._own_thread = next((thread for thread in news if thread.name == PROBE_THREAD), None)
            _note_exits(self._exits)
            if _leaves_without_atexit():
                multiprocessing.util.Finalize(None, self._end_fork, exitpriority=0)
            else:
                atexit.register(self._end)
        return self._probe

    def _end_fork(self) -> None:
        self._end()
        with suppress(OSError, KeyError):  # nobody reads notes outside of `crosswind run`
            note_end(Path(sys.argv[0]).name)

    def _end(self) -> None:
        if self.is_over or os.getpid() != self.pid or self._probe is None:
            return
        error = getattr(sys, "last_value", None) or self._left_by() or sys.exception()
        self._probe.abandon_step()
        self._probe.__exit__(type(error) if error else None, error, None)

    def _left_by(self) -> BaseException | None:
        """Return the error that led to the last `sys.exit`, or that exit itself; None without one."""
        last = self._exits[-1] if self._exits else None
        if last is None or (isinstance(last, SystemExit) and not last.code):
            return last
        return next((error for error in reversed(self._exits) if not isinstance(error, SystemExit)), last)


def _is_in_group() -> bool:
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and distributed.is_initialized()


def _leaves_without_atexit() -> bool:
    """Return whether this process is a fork by multiprocessing, which ends by `os._exit` after its own finalizers."""
    return multiprocessing.parent_process() is not None and "--multiprocessing-fork" not in sys.argv


def _note_exits(exits: list[BaseException]) -> None:
    """Note each `sys.exit` from now on, or the error that it follows: neither is there when the interpreter ends.

    `torch.multiprocessing.spawn` leaves a rank that failed by `sys.exit` while it handles the error.
    """
    original = sys.exit

    @functools.wraps(original)
    def leave(status: Any = None, /) -> None:
        if threading.current_thread() is threading.main_thread():
            handled = sys.exception()
            exits.append(handled if status and isinstance(handled, Exception) else SystemExit(status))
        original(status)

    sys.exit = leave  # type: ignore[assignment]
