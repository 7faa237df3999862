"""Background work of a server: it trains models that are requested, due or drifted."""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from crosswind.api.freed_memory import give_back_memory
from crosswind.api.thread_beside import Ending, WarnOnce, thread_beside
from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.schema.errors import ProjectError
from crosswind.models.training.operations import Runner

PAUSE_SECONDS = 2.0  # until a requested training begins
LOOK_SECONDS = 600.0  # between two checks for models that are due or drifted
END_SECONDS = 1.0

_log = logging.getLogger("crosswind.background")


def background(
    runner: Runner, *, pause_seconds: float = PAUSE_SECONDS, look_seconds: float = LOOK_SECONDS
) -> AbstractContextManager[Ending]:
    """Train models within the context; at its end an unfinished training is given back for the next server."""
    worker = _Worker(runner, look_seconds)
    return thread_beside(
        lambda ending: worker.work(ending, pause_seconds),
        "background",
        end_seconds=END_SECONDS,
        at_end=lambda: _give_back(runner),
    )


def _give_back(runner: Runner) -> None:
    try:
        runner.give_back()
    except NO_ANSWER as error:
        _log.warning("a training was not given back; the next server waits until its lease expires: %s", error)


class _Worker:
    """Does one task after the other; no error ends it, and every error is logged once."""

    def __init__(self, runner: Runner, look_seconds: float) -> None:
        self._runner = runner
        self._look_seconds = look_seconds
        self._warn = WarnOnce(_log)

    def work(self, ending: Ending, pause_seconds: float) -> None:
        """Work until the event is set."""
        checked = -self._look_seconds
        while not ending.wait(pause_seconds):
            is_due = time.monotonic() - checked >= self._look_seconds
            if is_due:
                checked = time.monotonic()
                for name in self._runner.names:
                    self._try(partial(self._runner.look_after, name))
            if self._try(self._runner.run_next) or is_due:
                give_back_memory()

    def _try(self, task: Callable[[], object]) -> object:
        try:
            return task()
        except (ProjectError, OSError, *NO_ANSWER) as error:
            self._warn(error)
        except Exception:  # noqa: BLE001 - the next time is another try
            _log.exception("work in the background failed")
        return None
