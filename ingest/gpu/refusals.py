"""Questions that a driver does not answer: asked again now and then, as a driver may be replaced."""

import time
from collections.abc import Callable, Hashable

AGAIN_NS = 60_000_000_000


class Refusals:
    """The refused questions, and until when they are not asked again."""

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._until_ns: dict[Hashable, int] = {}

    def note(self, question: Hashable) -> None:
        """Remembers that this was refused."""
        self._until_ns[question] = self._clock() + AGAIN_NS

    def holds(self, question: Hashable) -> bool:
        """Return whether this was refused lately."""
        until_ns = self._until_ns.get(question)
        return until_ns is not None and self._clock() < until_ns
