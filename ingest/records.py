"""Records of a spool become the catalog's runs and ranks; what does not fit is refused by name."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from crosswind.data.errors import MalformedError
from crosswind.data.run import Rank, Run, RunState

MAX_TEXT = 4096
MAX_NS = 2**63 - 1
TEXT_LIMITS = {"run_id": 64, "job_id": 64, "workload": 200, "system": 200, "node": 255}  # the catalog's columns
SIGNED = ("clock_offset_ns",)
NUMBER_LIMITS = dict.fromkeys(("world_size", "exit_code", "rank", "pid"), 2**31 - 1)
RUN_TYPES: dict[str, tuple[type, ...]] = {
    "run_id": (str,),
    "workload": (str,),
    "system": (str,),
    "state": (str,),
    "world_size": (int, type(None)),
    "configuration": (dict,),
    "job_id": (str, type(None)),
    "nodes": (list,),
    "started_ns": (int, type(None)),
    "ended_ns": (int, type(None)),
    "exit_code": (int, type(None)),
    "command": (list,),
    "software": (dict,),
    "tags": (dict,),
}
RANK_TYPES: dict[str, tuple[type, ...]] = {
    "run_id": (str,),
    "rank": (int,),
    "node": (str,),
    "pid": (int,),
    "started_ns": (int,),
    "ended_ns": (int, type(None)),
    "clock_offset_ns": (int, type(None)),
}


def workload_name(text: str) -> str:
    """A program's or user's own name of what is run, as a record takes it."""
    readable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return readable[: TEXT_LIMITS["workload"]] or "program"


def run_of(value: Mapping[str, Any]) -> Run:
    """The run that a record tells of. Raises: MalformedError naming field and value."""
    _check("run", value, RUN_TYPES, required=("run_id", "workload", "system", "state"))
    for name in ("configuration", "software", "tags"):
        for key, item in value.get(name, {}).items():
            if not isinstance(item, int | float | str | bool) or len(key) > MAX_TEXT or len(str(item)) > MAX_TEXT:
                raise MalformedError(
                    f"run record: {name}.{key:.80} is {item!r:.80}, "
                    f"expected a number, text or boolean of at most {MAX_TEXT} characters"
                )
    try:
        state = RunState(value["state"])
    except ValueError as error:
        raise MalformedError(f"run record: state {value['state']!r:.80} is not one of {', '.join(RunState)}") from error
    lists = {name: tuple(str(item) for item in value.get(name, ())) for name in ("nodes", "command")}
    return Run(**{**value, **lists, "state": state})


def rank_of(value: Mapping[str, Any]) -> Rank:
    """The rank that a record tells of. Raises: MalformedError naming field and value."""
    required = tuple(field.name for field in fields(Rank))[:5]
    _check("rank", value, RANK_TYPES, required=required)
    return Rank(**value)


def _check(
    what: str, value: Mapping[str, Any], types: Mapping[str, tuple[type, ...]], *, required: tuple[str, ...]
) -> None:
    missing = [name for name in required if value.get(name) in (None, "")]
    if missing:
        raise MalformedError(f"{what} record: {', '.join(missing)} missing")
    for name, item in value.items():
        if name not in types:
            raise MalformedError(f"{what} record: unknown field {name!r:.80}")
        if type(item) not in types[name]:
            raise MalformedError(f"{what} record: {name} is {item!r:.80}, expected {types[name][0].__name__}")
        reason = _unfit(name, item)
        if reason:
            raise MalformedError(f"{what} record: {name} is {str(item)[:40]!r}, expected {reason}")


def _unfit(name: str, item: object) -> str | None:
    if isinstance(item, str):
        limit = TEXT_LIMITS.get(name, MAX_TEXT)
        return None if len(item) <= limit and item.isprintable() else f"{limit} printable characters at most"
    if isinstance(item, int):
        low, high = -MAX_NS if name in SIGNED else 0, NUMBER_LIMITS.get(name, MAX_NS)
        return None if low <= item <= high else f"{low} to {high}"
    return None
