"""The activities of one rank, before its collectives meet those of other ranks."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from crosswind.data.traces.trace import NONE, Codes, Integers
from crosswind.models.traces.graph.graph import WAYS, Work, Works


@dataclass(frozen=True)
class Nodes:
    """Activities in any order; `collective` is the number of the one that it arrives at, or leaves; NONE."""

    begin_ns: Integers
    duration_ns: Integers
    work: Works
    name: Codes
    arrives: Codes
    leaves: Codes
    before: Codes  # (n, WAYS), positions here
    lag_work: Works

    def __len__(self) -> int:
        return len(self.begin_ns)


def nodes(begin: Integers, duration: Integers, work: NDArray[np.uint8] | Work, name: Codes | None = None) -> Nodes:
    """Return activities without dependencies."""
    count = len(begin)
    names: Codes = np.full(count, NONE, np.int32) if name is None else name
    none, before = np.full(count, NONE, np.int32), np.full((count, WAYS), NONE, np.int32)
    works = np.full(count, work, np.uint8)
    return Nodes(begin, duration, works, names, none, none.copy(), before, np.zeros((count, WAYS), np.uint8))


def joined(*parts: Nodes) -> tuple[Nodes, list[Integers]]:
    """Return all activities, and the positions of each part's; dependencies must not be set yet."""
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Nodes.__annotations__}
    bounds = np.cumsum([0, *map(len, parts)])
    return Nodes(**columns), [np.arange(first, last) for first, last in pairwise(bounds)]


def depend(graph: Nodes, way: int, rows: Integers, before: Integers, *, work: Work) -> None:
    """Set a way's dependency of some activities."""
    graph.before[rows, way] = before
    graph.lag_work[rows, way] = work


def previous_in(places: Codes, order: Integers) -> Integers:
    """Return of each event the one before it at its place, as positions, in an order by time; NONE for the first."""
    by_place = order[np.argsort(places[order], kind="stable")]
    previous: Integers = np.full(len(places), NONE, np.int64)
    same = places[by_place[1:]] == places[by_place[:-1]]
    previous[by_place[1:]] = np.where(same, by_place[:-1], NONE)
    return previous


def last_ended(ends: Integers, times: Integers) -> Integers:
    """Return the position of the last end at or before each time; NONE before the first."""
    order = np.argsort(ends, kind="stable")
    place = np.searchsorted(ends[order], times, side="right") - 1
    return np.where(place >= 0, order[np.maximum(place, 0)], NONE) if len(ends) else np.full(len(times), NONE)
