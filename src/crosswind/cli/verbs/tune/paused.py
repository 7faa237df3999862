"""The wait of workers while their study is paused."""

import time
from collections.abc import Callable
from typing import TypeVar

from crosswind.data.schema.errors import PausedError
from crosswind.ingest.ship.backoff import Backoff

LONGEST_SECONDS = 60.0  # between two questions: a thousand workers ask some 33 times a second
LOOK_SECONDS = 0.2
Answer = TypeVar("Answer")


def once_resumed(
    ask: Callable[[], Answer], *, goes_on: Callable[[], bool], say: Callable[[str], object]
) -> Answer | None:
    """Return what a service answers as soon as the study is not paused; None where `goes_on` ends the wait before.

    `say` gets the reason for the wait, once. Raises: what `ask` raises but for PausedError.
    """
    backoff, said = Backoff(), ""
    while goes_on():
        try:
            return ask()
        except PausedError as error:
            if str(error) != said:
                say(said := str(error))
        _wait(min(backoff.after_failure(), LONGEST_SECONDS), goes_on)
    return None


def _wait(seconds: float, goes_on: Callable[[], bool]) -> None:
    ends = time.monotonic() + seconds
    while goes_on() and (left := ends - time.monotonic()) > 0:
        time.sleep(min(left, LOOK_SECONDS))
