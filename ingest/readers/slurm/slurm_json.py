"""Values in the JSON of Slurm's data_parser plugins; each version has its own forms.

Source: Slurm's src/plugins/openapi/dbv0.0.38/parse.c and src/plugins/data_parser/v0.0.39 to v0.0.43/parsers.c.
"""

from collections.abc import Mapping, Sequence

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.readers.clock import Clock

NO_VALUES = (-2, -1, 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF)  # NO_VAL, INFINITE of slurm.h
STATES = (  # a state has flags; this is the order in which Slurm's own words prefer them
    *("COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"),
    *("STOPPED", "REVOKED", "RESV_DEL_HOLD", "SIGNALING"),
)


def inside(value: object, *names: str) -> object:
    """Return the value at a path of names; None if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def number(name: str, value: object) -> int | None:
    """Return a whole number, bare or as {set, infinite, number}; None when it is not set. Raises: MalformedError."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") is True else None
    if value is None or value in NO_VALUES:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise MalformedError(f"{name} {str(value)[:40]!r}; expected a whole number")
    return value


def text(name: str, value: object) -> str:
    """Return a text; empty when there is none. Raises: MalformedError."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedError(f"{name} {str(value)[:40]!r}; expected a text")
    return value


def time_ns(clock: Clock, name: str, value: object) -> int | None:
    """Return ns UTC of a time in seconds; None for 0. Raises: MalformedError."""
    seconds = number(name, value)
    return clock.nanoseconds(name, str(seconds)) if seconds else None


def state(value: object) -> tuple[str, str]:
    """Return the state in one word, as Slurm's text output has it, and all its words. Raises: MalformedError."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, Sequence) or not words or not all(isinstance(word, str) and word for word in words):
        raise MalformedError(f"state {str(value)[:40]!r}; expected a word such as COMPLETED, or a list of such")
    return next((word for word in STATES if word in words), words[0]), " ".join(words)


def exit_code(value: object) -> tuple[int | None, int | None]:
    """Return exit code and signal; as in Slurm's text output, a job that a signal ended has the code 0.

    Raises: MalformedError.
    """
    if not isinstance(value, Mapping) or "set" in value:  # as wait(2) has it
        status = number("exit_code", value)
        return (None, None) if status is None else (status >> 8 & 0xFF, status & 0x7F or None)
    signal = value.get("signal")
    number_of = inside(signal, "id") if inside(signal, "id") is not None else inside(signal, "signal_id")
    ended_by = number("signal", number_of) or None
    code = number("return_code", value.get("return_code"))
    return (0 if ended_by and code is None else code), ended_by


def loses_codes(value: object) -> bool:
    """Return whether this is of a version that writes exit code 0 for all programs: those up to 23.02."""
    return isinstance(value, Mapping) and isinstance(value.get("return_code"), int)


def resources(name: str, value: object) -> Mapping[str, int]:
    """Return counts of resources, by type and name (`gres/gpu`). Raises: MalformedError."""
    if value is None:
        return {}
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise MalformedError(f"{name} {str(value)[:40]!r}; expected a list")
    counts: dict[str, int] = {}
    for resource in value:
        kind, label = text(name, inside(resource, "type")), text(name, inside(resource, "name"))
        count = number(name, inside(resource, "count"))
        if kind and count is not None:
            counts[f"{kind}/{label}" if label else kind] = count
    return counts


def resources_text(counts: Mapping[str, int]) -> str:
    """Return resources as sacct writes them: `billing=2,cpu=2,mem=2M`; allocated memory is in MB."""
    return ",".join(f"{name}={counts[name]}{'M' if name == 'mem' else ''}" for name in sorted(counts))
