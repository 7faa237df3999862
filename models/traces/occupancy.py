"""Classes of intervals laid over a span: how long each combination of them is busy, exact in nanoseconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crosswind.data.traces.trace import Flags, Integers

Intervals: TypeAlias = tuple[Integers, Integers]  # begins and ends, ns; in any order, and they may overlap


@dataclass(frozen=True)
class Occupancy:
    """Pieces of a span, in which no class begins or ends."""

    begin_ns: Integers
    length_ns: Integers
    busy: Mapping[str, Flags]  # by class: whether anything of it is going on in the piece

    def total(self, where: Flags) -> int:
        """Return the length of the chosen pieces."""
        return int(self.length_ns[where].sum())


def occupancy(span: tuple[int, int], classes: Mapping[str, Intervals]) -> Occupancy:
    """Return the pieces of a span by the classes that are busy in them; what lies outside of the span is cut off."""
    clipped = {name: [np.clip(edge, *span) for edge in edges] for name, edges in classes.items()}
    points = np.concatenate([np.array(span, np.int64), *(edge for edges in clipped.values() for edge in edges)])
    order = np.argsort(points, kind="stable")
    lengths = np.diff(points[order])
    is_piece = lengths > 0
    busy, first = {}, 2
    for name, edges in clipped.items():
        change = np.zeros(len(points), np.int32)
        change[first : first + len(edges[0])] = 1
        first += len(edges[0])
        change[first : first + len(edges[1])] = -1
        first += len(edges[1])
        busy[name] = (np.cumsum(change[order])[:-1] > 0)[is_piece]
    return Occupancy(points[order][:-1][is_piece], lengths[is_piece], busy)


def union_ns(intervals: Intervals) -> int:
    """Return how long any of the intervals lasts."""
    begins, ends = intervals
    if not len(begins):
        return 0
    pieces = occupancy((int(begins.min()), int(ends.max())), {"any": intervals})
    return pieces.total(pieces.busy["any"])


def busy_within(edges: Integers, pieces: Occupancy, where: Flags) -> NDArray[np.int64]:
    """Return how long the chosen pieces last between consecutive edges, (n_edges - 1,), ns."""
    begins, lengths = pieces.begin_ns[where], pieces.length_ns[where]
    before = np.concatenate([[0], np.cumsum(lengths)])
    if not len(begins):
        return np.zeros(max(0, len(edges) - 1), np.int64)
    index = np.searchsorted(begins, edges, side="right")
    last = np.maximum(index - 1, 0)
    part = np.where(index > 0, np.clip(edges - begins[last], 0, lengths[last]) - lengths[last], 0)
    return np.diff(before[index] + part)
