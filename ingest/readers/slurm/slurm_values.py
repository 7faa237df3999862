"""Values in the output of Slurm's sacct: durations, sizes, exit codes, identifiers."""

import re

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.readers.clock import UNKNOWN

NO_VALUE = ("18446744073709551614", "18446744073709551615")  # NO_VAL64 and INFINITE64 of slurm.h
SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
JOB_ID = r"[0-9]{1,18}(?:_(?:[0-9]{1,18}|\[[^\]]*\]))?(?:\+[0-9]{1,9})?"
STEP_NAME = "[A-Za-z0-9_+]{1,64}"
IDENTIFIER = re.compile(rf"({JOB_ID})(?:\.({STEP_NAME}))?")
CLOCK_TIME = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,4}):([0-9]{2}):([0-9]{2})")
SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTP]?)")
STATE = re.compile(r"([A-Z][A-Z_]{1,40})\+?(?: by .{1,100})?")


def identifier(text: str) -> tuple[str, str]:
    """Return job id and job step ("" for the job itself): `12`, `12_3`, `12+1`, `12.batch`. Raises: MalformedError."""
    match = IDENTIFIER.fullmatch(text)
    if not match:
        raise MalformedError(f"job id {text[:40]!r}; expected 123, 123_4, 123+1 or one of these with .step")
    return match[1], match[2] or ""


def state_word(text: str) -> str:
    """Return the state without its causer: CANCELLED of `CANCELLED by 1000`. Raises: MalformedError."""
    match = STATE.fullmatch(text)
    if not match:
        raise MalformedError(f"State {text[:40]!r}; expected a word such as COMPLETED or CANCELLED by 1000")
    return match[1]


def exit_code(text: str) -> tuple[int | None, int | None]:
    """Return exit code and signal of `1:9`; no signal is None. Raises: MalformedError."""
    if not text:
        return None, None
    match = re.fullmatch("([0-9]{1,5}):([0-9]{1,5})", text)
    if not match:
        raise MalformedError(f"ExitCode {text[:40]!r}; expected code:signal such as 1:9")
    return int(match[1]), int(match[2]) or None


def count(column: str, text: str) -> int | None:
    """Return a whole number from 0 on; None when empty. Raises: MalformedError."""
    if text in UNKNOWN:
        return None
    if not re.fullmatch("[0-9]{1,18}", text):
        raise MalformedError(f"{column} {text[:40]!r}; expected a whole number")
    return int(text)


def duration_seconds(text: str) -> int | None:
    """Return seconds of `[days-]hours:minutes:seconds`; None when unknown. Raises: MalformedError."""
    if text in UNKNOWN:
        return None
    match = CLOCK_TIME.fullmatch(text)
    if not match:
        raise MalformedError(f"Elapsed {text[:40]!r}; expected [days-]hours:minutes:seconds")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def size_bytes(column: str, text: str) -> int | None:
    """Return bytes of `3408K`, or of a bare number under --noconvert; None when empty. Raises: MalformedError.

    K is 1024 bytes, M 1024 K and so on. Source: sacct(1); 22.05 wrote one value both as 3408K and as 3489792.
    """
    if text in UNKNOWN:
        return None
    match = SIZE.fullmatch(text)
    if not match:
        raise MalformedError(f"{column} {text[:40]!r}; expected a size such as 3408K, 2.5G or bytes")
    return round(float(match[1]) * SUFFIXES[match[2]]) if "." in match[1] else int(match[1]) * SUFFIXES[match[2]]


def energy_joules(text: str) -> float | None:
    """Return joules; None for Slurm's values without a meter: empty, 0 and its "no value". Raises: MalformedError."""
    if text in NO_VALUE:
        return None
    return float(count("ConsumedEnergyRaw", text) or 0) or None
