"""The wait after a failure, so that a thousand agents do not come back at the same moment."""

import random

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 300.0


class Backoff:
    """Waits that double from one failure to the next, drawn from zero up every time: full jitter.

    Source: AWS Architecture Blog, Exponential Backoff And Jitter.
    """

    def __init__(self, seed: int | None = None, *, first_seconds: float = FIRST_SECONDS) -> None:
        self._first_seconds = first_seconds
        self._random = random.Random(seed)  # noqa: S311 - spreads load, protects nothing
        self._failures = 0

    def after_failure(self, asked_seconds: float = 0.0) -> float:
        """Return the seconds to wait now, on top of what the server asked for."""
        ceiling = min(LONGEST_SECONDS, self._first_seconds * 2.0 ** min(self._failures, 20))
        self._failures += 1
        return asked_seconds + self._random.uniform(0, ceiling)

    def slowly(self) -> float:
        """Return the seconds to wait where only a person can help."""
        return self._random.uniform(LONGEST_SECONDS / 2, LONGEST_SECONDS)

    def succeeded(self) -> None:
        """Start again from the shortest wait."""
        self._failures = 0
