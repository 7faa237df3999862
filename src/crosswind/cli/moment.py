"""Moments on the command line: a date, a local time, or how long ago."""

import re
from datetime import datetime

from crosswind.data.schema.errors import InvalidInputError

SECONDS = {"seconds": 1, "minutes": 60, "hours": 3_600, "days": 86_400, "weeks": 604_800}
AGO = re.compile(rf"([0-9]{{1,9}})({'|'.join(unit[0] for unit in SECONDS)})|now-([0-9]{{1,9}})({'|'.join(SECONDS)})")
EXPECTED = "expected a time such as 90s, 1h, 7d, 2026-11-01, 2026-11-01T08:00 or now-7days"
EARLIEST = 10**9  # 2001: an earlier date is a slip


def moment_of(text: str, now: float, *, option: str = "--since") -> int:
    """Return seconds since 1970, 0 for longer ago than that. Raises: InvalidInputError, which names the option."""
    if ago := AGO.fullmatch(text):
        number, unit = ago[1] or ago[3], ago[2] or ago[4]
        return max(0, int(now) - int(number) * next(SECONDS[name] for name in SECONDS if name.startswith(unit)))
    try:
        seconds = int(datetime.fromisoformat(text).astimezone().timestamp())
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInputError(f"{option} {text!r:.40}: {EXPECTED}") from error
    if not EARLIEST <= seconds <= now:
        raise InvalidInputError(f"{option} {text!r}: expected a time between 2001 and now")
    return seconds
