"""Work of a server beside answering: it trains the models that are asked for, are due or drifted."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.schema.errors import ProjectError
from crosswind.models.training.operations import Runner

PAUSE_SECONDS = 2.0  # until a training that was asked for begins
LOOK_SECONDS = 600.0  # between two looks at what is due and what drifted
NICE = 10  # whoever waits for an answer goes first
END_SECONDS = 1.0

_log = logging.getLogger("crosswind.background")


@contextmanager
def background(
    runner: Runner, *, pause_seconds: float = PAUSE_SECONDS, look_seconds: float = LOOK_SECONDS
) -> Iterator[None]:
    """Trains again and again, within; leaving it, a training that is not done is given back for the next server."""
    ending = threading.Event()
    worker = _Worker(runner, look_seconds)
    thread = threading.Thread(target=worker.work, args=(ending, pause_seconds), name="background", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        _give_back(runner)
        thread.join(END_SECONDS)


def _give_back(runner: Runner) -> None:
    try:
        runner.give_back()
    except NO_ANSWER as error:
        _log.warning("a training was not given back, the next server waits until its lease has run out: %s", error)


class _Worker:
    """Does one thing after the other; nothing that goes wrong ends it, and each thing that does is logged once."""

    def __init__(self, runner: Runner, look_seconds: float) -> None:
        self._runner = runner
        self._look_seconds = look_seconds
        self._told: set[str] = set()

    def work(self, ending: threading.Event, pause_seconds: float) -> None:
        """Works until the event is set."""
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        looked = -self._look_seconds
        while not ending.wait(pause_seconds):
            if time.monotonic() - looked >= self._look_seconds:
                looked = time.monotonic()
                for name in self._runner.names:
                    self._try(partial(self._runner.look_after, name))
            self._try(self._runner.run_next)

    def _try(self, task: Callable[[], object]) -> None:
        try:
            task()
        except (ProjectError, OSError, *NO_ANSWER) as error:
            if str(error) not in self._told:  # once, not every time
                self._told.add(str(error))
                _log.warning("%s", error)
        except Exception:  # noqa: BLE001 - whatever it is, the next time is another try
            _log.exception("work in the background failed")
