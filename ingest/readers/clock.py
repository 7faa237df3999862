"""Times in schedulers' files and logs: seconds since 1970, or ISO 8601 with or without a zone."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from crosswind.data.schema.errors import InvalidInputError, MalformedError

UNKNOWN = ("", "Unknown", "None", "N/A", "NONE")
EARLIEST_SECONDS = 10**9  # September 2001, before there was a Slurm: a smaller number is no time since 1970
LATEST_SECONDS = (1 << 63) // 1_000_000_000 - 1  # the year 2262, after which nanoseconds need more than 64 bits
ISO_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:Z|[+-][0-9]{2}:?[0-9]{2})?")


@dataclass
class Clock:
    """Turns times into ns UTC; counts the doubtful ones."""

    zone: tzinfo
    local: int = 0
    ambiguous: int = 0
    first_ambiguous: str = ""

    def nanoseconds(self, column: str, text: str) -> int | None:
        """Return ns of a time in seconds since 1970 or ISO 8601; None when it is unknown. Raises: MalformedError."""
        if text in UNKNOWN:
            return None
        seconds = int(text) if re.fullmatch("[0-9]{1,12}", text) else self._seconds(column, text)
        if not EARLIEST_SECONDS <= seconds <= LATEST_SECONDS:
            raise MalformedError(f"{column} {text[:40]!r} is not between 2001 and 2262")
        return seconds * 1_000_000_000

    def notes(self) -> list[str]:
        """Return notes on doubtful times, for a report."""
        notes = []
        if self.local:
            notes.append(f"time_zone: {self.local} times have no zone and were read as {self.zone}")
        if self.ambiguous:
            change = "come twice or never when clocks change in that zone; of two, the earlier was taken"
            notes.append(f"{self.ambiguous} times, {self.first_ambiguous} first, {change}")
        return notes

    def _seconds(self, column: str, text: str) -> int:
        """Return seconds since 1970 of an ISO 8601 time, in `zone` unless it names its own."""
        try:
            moment = datetime.fromisoformat(text if ISO_TIME.fullmatch(text) else "")
        except ValueError as error:
            expected = "seconds since 1970 (SLURM_TIME_FORMAT=%s) or YYYY-MM-DDTHH:MM:SS"
            raise MalformedError(f"{column} {text[:40]!r} is no time; expected {expected}") from error
        if moment.tzinfo is None:
            self.local += 1
            moment = self._placed(moment, text)
        return int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())

    def _placed(self, moment: datetime, text: str) -> datetime:
        """Return the local time in its zone; the first of two when clocks were put back."""
        first, second = (moment.replace(tzinfo=self.zone, fold=fold) for fold in (0, 1))
        if first.utcoffset() != second.utcoffset():  # twice that day, or never
            self.ambiguous += 1
            self.first_ambiguous = self.first_ambiguous or text
        return first


def zone_named(name: str) -> tzinfo:
    """Return a time zone of the IANA database; UTC also without one. Raises: InvalidInputError."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidInputError(f"time zone {name!r} is not known; expected one such as Europe/Berlin") from error
