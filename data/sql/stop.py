"""The end of a statement before its answer: because its time is over, or nobody waits for it any more."""

import threading
from collections.abc import Callable
from contextlib import suppress


class Stop:
    """Ends what a statement has begun, wherever it is: what can be ended is added, and ended once it is stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[Callable[[], None]] = []
        self.reason: str | None = None

    def add(self, end: Callable[[], None]) -> None:
        """Add a way to end something, which is used at once if it is stopped already."""
        with self._lock:
            self._ends.append(end)
            is_stopped = self.reason is not None
        if is_stopped:
            end()

    def stop(self, reason: str) -> None:
        """End everything, because of this; the first reason holds."""
        with self._lock:
            self.reason = self.reason or reason
            ends = list(self._ends)
        for end in ends:
            with suppress(Exception):  # what has ended meanwhile
                end()
