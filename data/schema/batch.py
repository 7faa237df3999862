"""Batches: when each was made, as the names of segments say, and for how long they are remembered."""

import re

from crosswind.data.schema.errors import InvalidInputError

BATCH_DAYS = "CROSSWIND_BATCH_DAYS"
REMEMBERED_DAYS, LEAST_DAYS, MOST_DAYS = 35, 2, 36_500
DAY_NS = 86_400_000_000_000
YOUNG_NS = DAY_NS
LAST_NS = 2**63 - 1
SEGMENT = re.compile(r"([0-9]{1,20})-[0-9a-f]{8}\..+\.segment")


class ForgottenError(InvalidInputError):
    """A batch so old that whether it was stored before is not remembered."""


def made_in(name: str) -> int | None:
    """Return when a segment of this name was made, ns UTC; None of any other name."""
    match = SEGMENT.fullmatch(name)
    return min(int(match[1]), LAST_NS) if match else None


def is_young(name: str, now_ns: int) -> bool:
    """Return whether a segment of this name was made a day ago or later, so that it is surely remembered.

    A clock that was wrong once, and by which too much was forgotten, keeps none of these out.
    """
    made_ns = made_in(name)
    return made_ns is None or made_ns > now_ns - YOUNG_NS


def days_of(text: str) -> int:
    """Return the days for which batches are remembered, as the setting has them. Raises: InvalidInputError."""
    if not text:
        return REMEMBERED_DAYS
    if not text.isascii() or not text.isdigit() or not LEAST_DAYS <= int(text) <= MOST_DAYS:
        raise InvalidInputError(f"{BATCH_DAYS} is {text!r:.40}, expected {LEAST_DAYS} to {MOST_DAYS} days")
    return int(text)
