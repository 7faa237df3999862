"""Calls that a driver refuses: repeated from time to time, as a driver may be replaced."""

import time
from collections.abc import Callable, Hashable

AGAIN_NS = 60_000_000_000


class Refusals:
    """The refused calls, and until when they are not repeated."""

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._until_ns: dict[Hashable, int] = {}

    def note(self, question: Hashable) -> None:
        """Note that this call was refused."""
        self._until_ns[question] = self._clock() + AGAIN_NS

    def holds(self, question: Hashable) -> bool:
        """Return whether this was refused lately."""
        until_ns = self._until_ns.get(question)
        return until_ns is not None and self._clock() < until_ns
