"""A thread that works beside the answers of a server, and what goes wrong in it."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

NICE = 10  # answers to requests go first


class Ending(threading.Event):
    """Ends a thread, and notes its turns: what it does between two waits for this event. Times are ns UTC."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name = name
        self.turns = 0
        self.began_ns: int | None = None
        self.ended_ns: int | None = None
        self.thread: threading.Thread | None = None

    @property
    def is_alive(self) -> bool:
        """Return whether its thread runs."""
        return self.thread is not None and self.thread.is_alive()

    def wait(self, timeout: float | None = None) -> bool:
        """Return whether the thread is to end; waits so long for that."""
        if self.turns:
            self.ended_ns = time.time_ns()
        is_over = super().wait(timeout)
        if not is_over:
            self.turns += 1
            self.began_ns = time.time_ns()
        return is_over


@contextmanager
def thread_beside(
    work: Callable[[Ending], None], name: str, *, end_seconds: float, at_end: Callable[[], None] = lambda: None
) -> Iterator[Ending]:
    """Work in a thread of low priority within the context.

    At its end the event that `work` gets is set, and `at_end` is called; then the thread has so long to come to an end.
    """
    ending = Ending(name)
    ending.thread = thread = threading.Thread(target=_politely, args=(work, ending), name=name, daemon=True)
    thread.start()
    try:
        yield ending
    finally:
        ending.set()
        at_end()
        thread.join(end_seconds)


def _politely(work: Callable[[Ending], None], ending: Ending) -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
    work(ending)


class WarnOnce:
    """Logs each warning once, not every time that work fails in the same way."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._logged: set[str] = set()

    def __call__(self, problem: object) -> None:
        """Log it, unless it was logged before."""
        text = str(problem)
        if text not in self._logged:
            self._logged.add(text)
            self._log.warning("%s", text)
