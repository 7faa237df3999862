"""Values in accounting logs of PBS and Torque: pairs, hosts, durations, exit status."""

import re

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.hostlist import NODES_LIMIT
from crosswind.ingest.readers.schedulers.accounts import LAST_SIGNAL, shell_signal

BLANK_IN_QUOTES = re.compile(r"""=(?:"[^"\s]*\s|'[^'\s]*\s)""")
QUOTES = ('"', "'")
PAIR = re.compile(r"""([^\s=]+)=("[^"]*"|'[^']*'|\S*(?: [^\s="']++(?!\S))*)""")
HOST = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,252})/([0-9]{1,9}(?:[,-][0-9]{1,9})*)(?:\*([0-9]{1,9}))?")
DURATION = re.compile(r"(?:(?:([0-9]{1,9}):)?([0-9]{1,9}):)?([0-9]{1,12})(?:\.[0-9]{1,9})?")
SIGNALLED = 256  # the server adds it to the number of the signal that ended the job's first process
OVER_LIMIT = {-29: "TIMEOUT", -27: "OUT_OF_MEMORY", -26: "OUT_OF_MEMORY"}  # of PBS; Torque has none


def pairs(text: str) -> dict[str, str]:
    """Return the values by name; of a repeated name the first, as the later ones may be users'.

    A word without `=` belongs to the value before: groups may be named `domain users`.
    Source: cpy_quote_value in OpenPBS, src/server/accounting.c: a value with a blank is quoted by " or '.
    """
    words = [word.partition("=") for word in text.split()]
    values = {name: value for name, equals, value in words if equals}
    if len(values) < len(words) or BLANK_IN_QUOTES.search(text):
        values = dict(reversed(PAIR.findall(text)))
    if '"' in text or "'" in text:
        values |= {name: value[1:-1] for name, value in values.items() if value[:1] in QUOTES and _is_quoted(value)}
    return values


def _is_quoted(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1]


def hosts(text: str) -> tuple[tuple[str, ...], int]:
    """Return ordered host names, and CPUs, of `n1/0*8+n2/0*8`, `n1/0+n1/1` or `n1/0-7,9`. Raises: MalformedError.

    Source: PBS Professional reference guide, exec_host; Torque administrator guide, 2.1 (ranges since version 4).
    """
    names: dict[str, None] = {}
    cpus = 0
    for part in text.split("+"):
        match = HOST.fullmatch(part)
        if not match:
            raise MalformedError(f"exec_host {part[:80]!r}; expected a host such as n1/0, n1/0*8 or n1/0-7")
        name, slots, count = match.groups()
        names[name] = None
        cpus += int(count) if count else 1 if slots.isdigit() else _slots(slots)
    if len(names) > NODES_LIMIT:
        raise MalformedError(f"exec_host {text[:80]!r} names more than {NODES_LIMIT} nodes")
    return tuple(names), cpus


def _slots(text: str) -> int:
    """Return how many numbers are in `0-7,9`. Raises: MalformedError."""
    count = 0
    for piece in text.split(","):
        first, _hyphen, last = piece.partition("-")
        if not (last or first).isdigit() or int(last or first) < int(first):
            raise MalformedError(f"exec_host slots {text[:80]!r}; expected numbers such as 0-7,9")
        count += int(last or first) - int(first) + 1
    return count


def duration_seconds(name: str, text: str | None) -> float | None:
    """Return seconds of `hours:minutes:seconds`, or of seconds alone, which Torque 5 writes. Raises: MalformedError."""
    if not text:
        return None
    match = DURATION.fullmatch(text)
    if not match:
        raise MalformedError(f"{name} {text[:40]!r}; expected HH:MM:SS or seconds")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(hours * 3600 + minutes * 60 + seconds)


def exit_status(text: str | None) -> int | None:
    """Return the exit status as a number; None when there is none. Raises: MalformedError."""
    if not text:
        return None
    if not re.fullmatch("-?[0-9]{1,9}", text):
        raise MalformedError(f"Exit_status {text[:40]!r}; expected a whole number")
    return int(text)


def code_and_signal(status: int | None) -> tuple[int | None, int | None]:
    """Return exit code and signal of an exit status; below 0, PBS itself ended the job, and there is neither.

    Source: PBS Professional administrator's guide, job exit status: 128 or 256 and the signal for one that was killed.
    """
    if status is None or status < 0:
        return None, None
    if SIGNALLED < status <= SIGNALLED + LAST_SIGNAL:
        return None, status - SIGNALLED
    return status, shell_signal(status)


def ended_state(status: int | None) -> str:
    """Return Slurm's word for a job's end; ENDED without an exit status."""
    if status is None:
        return "ENDED"
    return OVER_LIMIT.get(status, "FAILED") if status else "COMPLETED"
