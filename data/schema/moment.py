"""Moments and durations as text: RFC 3339, or how long before now."""

import re
from datetime import UTC, datetime

from crosswind.data.schema.errors import InvalidInputError

SECOND_NS = 1_000_000_000
UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
AGO = re.compile(rf"(?:now)?-?([0-9]{{1,9}})([{''.join(UNITS)}])")
DURATION = re.compile(rf"([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)([{''.join(UNITS)}]?)")
FRACTION = re.compile(r"(?<=:[0-9]{2})\.([0-9]{1,9})(?![0-9])")
EXPECTED = "expected a time such as 2026-11-01T08:00:00Z, 2026-11-01, now, -1h or -7d"
YEARS = (1970, 2262)  # the nanoseconds of others have more than 63 bits


def moment_ns(text: str, now_ns: int, *, field: str) -> int:
    """Return nanoseconds since 1970, exact; without a zone UTC. Raises: InvalidInputError, which names the field."""
    if text == "now":
        return now_ns
    if ago := AGO.fullmatch(text):
        return max(0, now_ns - int(ago[1]) * UNITS[ago[2]] * SECOND_NS)
    moment = _to_the_second(FRACTION.sub("", text), f"{field} {text!r:.60}: {EXPECTED}")
    if not YEARS[0] < moment.year < YEARS[1]:
        raise InvalidInputError(f"{field} {text!r:.60}: expected a year between {YEARS[0]} and {YEARS[1]}")
    fraction = FRACTION.search(text)
    return int(moment.timestamp()) * SECOND_NS + (int(fraction[1].ljust(9, "0")) if fraction else 0)


def _to_the_second(text: str, refusal: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInputError(refusal) from error
    if moment.microsecond:  # more digits than nanoseconds have
        raise InvalidInputError(refusal)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def duration_seconds(text: str, *, field: str) -> float:
    """Return seconds of a duration such as 30s, 5m, 0.5 (seconds) or 2h. Raises: InvalidInputError."""
    match = DURATION.fullmatch(text)
    if not match or not float(match[1]):
        raise InvalidInputError(f"{field} {text!r:.60}: expected a duration above 0 such as 30s, 5m, 1h or 0.5")
    return float(match[1]) * UNITS[match[2] or "s"]
