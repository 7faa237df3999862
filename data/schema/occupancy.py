"""Users of a node over time: allocations of jobs and placements of ranks.

Facts about one of them may come twice, in parts and in any order. Merging takes field by field the earliest start, the
latest end and otherwise the greater value, so that the order never matters.
"""

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, TypeVar


class Source(StrEnum):
    """Sources of a fact, the surest last."""

    ENVIRONMENT = "environment"
    PROLOG = "prolog"
    PROBE = "probe"


@dataclass(frozen=True)
class Allocation:
    """A job on one node, from start to end; times in ns UTC, None when unknown.

    `node` is the scheduler's name of it, `sampled_as` the name under which its samples stand. A job that was requeued
    has one allocation for every `restart_count`. `gpus` are indices or UUIDs as the scheduler counts them.
    """

    job_id: str
    node: str
    sampled_as: str
    source: Source
    system: str = ""  # as elsewhere empty when unknown: it is part of the key
    restart_count: int = 0
    array_id: str | None = None
    uid: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    gpus: tuple[str, ...] = ()
    cpus: int | None = None


@dataclass(frozen=True)
class Placement:
    """A process that is a rank; pid and start together name it for ever. `gpus` are those it was given."""

    node: str
    pid: int
    start_ticks: int
    sampled_as: str
    source: Source
    system: str = ""
    job_id: str | None = None
    step_id: str | None = None
    run_id: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    gpus: tuple[str, ...] = ()


ALLOCATION_KEY = ("system", "job_id", "node", "restart_count")
PLACEMENT_KEY = ("system", "node", "pid", "start_ticks")
Place = TypeVar("Place", bound=Allocation | Placement)


def merge_places(stored: Place, news: Place) -> Place:
    """Return what both say together of one allocation or placement, whichever came first."""
    facts = {
        field.name: _joined(field.name, getattr(stored, field.name), getattr(news, field.name))
        for field in fields(stored)
    }
    return replace(stored, **facts)


def _joined(name: str, one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    if name == "started_ns":
        return min(one, other)
    if name == "source":
        return max(one, other, key=list(Source).index)
    return max(one, other)
