"""Values as Slurm's sacct writes them: times, durations, sizes, exit codes, identifiers."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from crosswind.data.errors import InvalidInputError, MalformedError

UNKNOWN = ("", "Unknown", "None", "N/A", "NONE")
EARLIEST_SECONDS = 10**9  # September 2001, before there was a Slurm: a smaller number is no time since 1970
LATEST_SECONDS = (1 << 63) // 1_000_000_000 - 1  # the year 2262, where nanoseconds leave 64 bits
NO_VALUE = ("18446744073709551614", "18446744073709551615")  # NO_VAL64 and INFINITE64 of slurm.h
SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
IDENTIFIER = re.compile(r"([0-9]{1,18}(?:_(?:[0-9]{1,18}|\[[^\]]*\]))?(?:\+[0-9]{1,9})?)(?:\.([A-Za-z0-9_+]{1,64}))?")
ISO_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:Z|[+-][0-9]{2}:?[0-9]{2})?")
CLOCK_TIME = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,4}):([0-9]{2}):([0-9]{2})")
SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTP]?)")
STATE = re.compile(r"([A-Z][A-Z_]{1,40})\+?(?: by .{1,100})?")


@dataclass
class Clock:
    """Turns sacct's times into ns UTC; counts what it had to take on trust."""

    zone: tzinfo
    local: int = 0
    ambiguous: int = 0
    first_ambiguous: str = ""

    def nanoseconds(self, column: str, text: str) -> int | None:
        """A time in seconds since 1970 or ISO 8601; None when Slurm does not know it. Raises: MalformedError."""
        if text in UNKNOWN:
            return None
        seconds = int(text) if re.fullmatch("[0-9]{1,12}", text) else self._seconds(column, text)
        if not EARLIEST_SECONDS <= seconds <= LATEST_SECONDS:
            raise MalformedError(f"{column} {text[:40]!r} is not between 2001 and 2262")
        return seconds * 1_000_000_000

    def _seconds(self, column: str, text: str) -> int:
        """Seconds since 1970 of an ISO 8601 time, which is of `zone` unless it names its own."""
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
        """The local time in its zone; the first of two when clocks were put back."""
        first, second = (moment.replace(tzinfo=self.zone, fold=fold) for fold in (0, 1))
        if first.utcoffset() != second.utcoffset():  # twice that day, or never
            self.ambiguous += 1
            self.first_ambiguous = self.first_ambiguous or text
        return first


def zone_named(name: str) -> tzinfo:
    """A time zone of the IANA database; UTC also where there is none. Raises: InvalidInputError."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidInputError(f"time zone {name!r} is not known; expected one such as Europe/Berlin") from error


def identifier(text: str) -> tuple[str, str]:
    """Job id and job step ("" for the job itself): `12`, `12_3`, `12+1`, `12.batch`. Raises: MalformedError."""
    match = IDENTIFIER.fullmatch(text)
    if not match:
        raise MalformedError(f"job id {text[:40]!r}; expected 123, 123_4, 123+1 or one of these with .step")
    return match[1], match[2] or ""


def state_word(text: str) -> str:
    """The state without who caused it: CANCELLED of `CANCELLED by 1000`. Raises: MalformedError."""
    match = STATE.fullmatch(text)
    if not match:
        raise MalformedError(f"State {text[:40]!r}; expected a word such as COMPLETED or CANCELLED by 1000")
    return match[1]


def exit_code(text: str) -> tuple[int | None, int | None]:
    """Exit code and signal of `1:9`; no signal is None. Raises: MalformedError."""
    if not text:
        return None, None
    match = re.fullmatch("([0-9]{1,5}):([0-9]{1,5})", text)
    if not match:
        raise MalformedError(f"ExitCode {text[:40]!r}; expected code:signal such as 1:9")
    return int(match[1]), int(match[2]) or None


def count(column: str, text: str) -> int | None:
    """A whole number from 0 on; None when empty. Raises: MalformedError."""
    if text in UNKNOWN:
        return None
    if not re.fullmatch("[0-9]{1,18}", text):
        raise MalformedError(f"{column} {text[:40]!r}; expected a whole number")
    return int(text)


def duration_seconds(text: str) -> int | None:
    """Seconds of `[days-]hours:minutes:seconds`; None when unknown. Raises: MalformedError."""
    if text in UNKNOWN:
        return None
    match = CLOCK_TIME.fullmatch(text)
    if not match:
        raise MalformedError(f"Elapsed {text[:40]!r}; expected [days-]hours:minutes:seconds")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def size_bytes(column: str, text: str) -> int | None:
    """Bytes of `3408K`, or of a bare number under --noconvert; None when empty. Raises: MalformedError.

    K is 1024 bytes, M 1024 K and so on. Source: sacct(1); 22.05 wrote one value both as 3408K and as 3489792.
    """
    if text in UNKNOWN:
        return None
    match = SIZE.fullmatch(text)
    if not match:
        raise MalformedError(f"{column} {text[:40]!r}; expected a size such as 3408K, 2.5G or bytes")
    return round(float(match[1]) * SUFFIXES[match[2]]) if "." in match[1] else int(match[1]) * SUFFIXES[match[2]]


def energy_joules(text: str) -> float | None:
    """Joules; None for what Slurm writes when nothing measures: empty, 0 and its "no value". Raises: MalformedError."""
    if text in NO_VALUE:
        return None
    return float(count("ConsumedEnergyRaw", text) or 0) or None
