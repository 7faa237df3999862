"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable


def until(claim: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something holds. Raises: AssertionError where it does not in so many seconds."""
    deadline = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.02)
