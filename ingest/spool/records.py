"""Records of a spool as the catalog's objects; a value that does not fit is refused by name."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.occupancy import ALLOCATION_KEY, PLACEMENT_KEY, Allocation, Placement, Source
from crosswind.data.schema.run import Rank, Run, RunState

MAX_TEXT = 4096
MAX_NS = 2**63 - 1
TEXT_LIMITS = {  # the catalog's columns
    **dict.fromkeys(("run_id", "job_id", "array_id", "step_id"), 64),
    **dict.fromkeys(("workload", "system", "user", "account"), 200),
    **dict.fromkeys(("node", "sampled_as"), 255),
    **dict.fromkeys(("kind", "unit"), 64),
}
MAX_GPUS = 64
SIGNED = ("clock_offset_ns",)
NUMBERS = ("world_size", "exit_code", "rank", "local_rank", "pid", "restart_count", "cpus")
NUMBER_LIMITS = dict.fromkeys(NUMBERS, 2**31 - 1)
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
    "facts": (dict,),
    "user": (str,),
    "account": (str,),
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
INJECTION_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("run_id", "kind", "unit", "node"), (str,)),
    "strength": (int, float),
    **dict.fromkeys(("rank", "started_ns", "ended_ns"), (int,)),
}
PLACE_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("system", "node", "sampled_as", "source", "job_id"), (str,)),
    **dict.fromkeys(("started_ns", "ended_ns"), (int,)),
    "gpus": (list,),
}
ALLOCATION_TYPES = {**PLACE_TYPES, "array_id": (str,), **dict.fromkeys(("restart_count", "uid", "cpus"), (int,))}
PLACEMENT_TYPES = {
    **PLACE_TYPES,
    **dict.fromkeys(("step_id", "run_id"), (str,)),
    **dict.fromkeys(("pid", "start_ticks", "rank", "local_rank", "world_size"), (int,)),
}


def workload_name(text: str) -> str:
    """Return a program's or user's own name of a workload in the form that a record takes."""
    readable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return readable[: TEXT_LIMITS["workload"]] or "program"


def run_of(value: Mapping[str, Any]) -> Run:
    """Return the run of a record. Raises: MalformedError naming field and value."""
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
    return Run(**{**value, **lists, "state": state, "facts": _facts_of(value.get("facts", {}))})


def _facts_of(value: Mapping[str, Any]) -> Facts:
    try:
        return Facts.of(value)
    except InvalidInputError as error:
        raise MalformedError(f"run record: {error}") from error


def rank_of(value: Mapping[str, Any]) -> Rank:
    """Return the rank of a record. Raises: MalformedError naming field and value."""
    required = tuple(field.name for field in fields(Rank))[:5]
    _check("rank", value, RANK_TYPES, required=required)
    return Rank(**value)


def injection_of(value: Mapping[str, Any]) -> Injected:
    """Return the injected fault of a record. Raises: MalformedError naming field and value."""
    _check("injection", value, INJECTION_TYPES, required=tuple(field.name for field in fields(Injected)))
    if not 0 <= value["strength"] < math.inf:
        raise MalformedError(
            f"injection record: strength is {value['strength']!r}, expected a finite number, 0 or more"
        )
    if value["ended_ns"] < value["started_ns"]:
        raise MalformedError(f"injection record: ended_ns is {value['ended_ns']}, expected started_ns or later")
    return Injected(**value)


def allocation_of(value: Mapping[str, Any]) -> Allocation:
    """Return the allocation of a record. Raises: MalformedError naming field and value."""
    _check("allocation", value, ALLOCATION_TYPES, required=("job_id", "node", "sampled_as", "source"))
    return Allocation(**{**value, **_source_and_gpus("allocation", value)})


def placement_of(value: Mapping[str, Any]) -> Placement:
    """Return the placement of a record. Raises: MalformedError naming field and value."""
    _check("placement", value, PLACEMENT_TYPES, required=("node", "pid", "start_ticks", "sampled_as", "source"))
    return Placement(**{**value, **_source_and_gpus("placement", value)})


PLACES: Mapping[str, Callable[[Mapping[str, Any]], Allocation | Placement]] = {
    "allocation": allocation_of,
    "placement": placement_of,
}


def in_one_order(places: Iterable[Allocation | Placement]) -> list[Allocation | Placement]:
    """Return them sorted by kind and key, so that two processes that merge the same ones never deadlock."""
    return sorted(places, key=_key)


def _key(place: Allocation | Placement) -> tuple[object, ...]:
    names = ALLOCATION_KEY if isinstance(place, Allocation) else PLACEMENT_KEY
    return type(place).__name__, *(getattr(place, name) for name in names)


def _source_and_gpus(what: str, value: Mapping[str, Any]) -> dict[str, Any]:
    gpus = value.get("gpus", [])
    if len(gpus) > MAX_GPUS or not all(isinstance(gpu, str) and gpu.isprintable() and len(gpu) <= 80 for gpu in gpus):
        raise MalformedError(f"{what} record: gpus is {gpus!r:.80}, expected {MAX_GPUS} short names at most")
    try:
        return {"source": Source(value["source"]), "gpus": tuple(gpus)}
    except ValueError as error:
        names = ", ".join(Source)
        raise MalformedError(f"{what} record: source {value['source']!r:.80} is not one of {names}") from error


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
