"""The time of one rank's windows, in which each instant is of exactly one owner.

On a device: of the kernel that runs since longest, else of the collective, else of the copy; an idle instant is of the
work that comes next, as host-bound unless launched work waits. On a host without a device: of the innermost operator on
the thread that works most, then on the next one; else of the message, else of input and output; what is left is time of
the host before the operator that comes next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Flags, Integers, Kind
from crosswind.models.traces.breakdown import launched
from crosswind.models.traces.nesting import parents
from crosswind.models.traces.occupancy import Intervals


class Part(IntEnum):
    """The class of an owner."""

    WORK = 0  # kernels of a device, operators of a host without one
    WAIT = 1  # communication that nothing hides, until the last rank arrives
    TRANSFER = 2  # after that
    MEMORY = 3
    HOST = 4
    IDLE = 5


Layer: TypeAlias = tuple[Integers, Integers, Integers, Integers]  # begins, ends, events, parts; disjoint, in order


@dataclass(frozen=True)
class Owned:
    """Pieces of windows, one a row: its window, its length in ns, the part, and the event that owns it or comes next.

    The event is NONE where none comes next.
    """

    window: Integers
    ns: Integers
    part: Integers
    event: Integers


def owned(events: Events, edges: Integers, transfer_ns: Integers) -> Owned:
    """Return the pieces between edges, which sum to the whole exactly.

    transfer_ns: (n_events,), of each collective the time for which it transfers, at its end.
    """
    is_device = bool(np.any(events.kind <= Kind.COPY))
    layers = _of_device(events, transfer_ns) if is_device else _of_host(events, transfer_ns)
    waiting = _exclusive(*launched(events), np.zeros(0, np.int64)) if is_device else _NO_LAYER
    begin, length = _pieces(edges, [*layers, waiting])
    next_of = np.flatnonzero(events.kind <= Kind.COPY) if is_device else _operators(events)
    event, part = _next(events, next_of, begin), np.full(len(begin), Part.HOST, np.int64)
    part[_covered(waiting, begin)[1]] = Part.IDLE
    for layer in reversed(layers):
        place, is_covered = _covered(layer, begin)
        event[is_covered], part[is_covered] = layer[2][place[is_covered]], layer[3][place[is_covered]]
    return Owned(np.searchsorted(edges, begin, side="right") - 1, length, part, event)


_NONE: Integers = np.zeros(0, np.int64)
_NO_LAYER: Layer = (_NONE, _NONE, _NONE, _NONE)


def _of_device(events: Events, transfer_ns: Integers) -> list[Layer]:
    return [
        _layer(events, np.flatnonzero(events.kind == Kind.KERNEL), Part.WORK),
        _communication(events, Kind.COLLECTIVE, transfer_ns),
        _layer(events, np.flatnonzero(events.kind == Kind.COPY), Part.MEMORY),
    ]


def _of_host(events: Events, transfer_ns: Integers) -> list[Layer]:
    rows = _operators(events)
    places, place = np.unique(events.place[rows], return_inverse=True)
    threads = [_innermost(events, rows[place == number]) for number in range(len(places))]
    threads.sort(key=lambda layer: -int((layer[1] - layer[0]).sum()))
    messages = _communication(events, Kind.MESSAGE, transfer_ns)
    return [*threads, messages, _layer(events, np.flatnonzero(events.kind == Kind.IO), Part.MEMORY)]


def _operators(events: Events) -> Integers:
    return np.flatnonzero((events.kind == Kind.OPERATOR) | (events.kind == Kind.USEFUL))


def _layer(events: Events, rows: Integers, part: Part) -> Layer:
    begins, ends = events.begin_ns[rows], events.begin_ns[rows] + events.duration_ns[rows]
    return _exclusive(begins, ends, rows, np.full(len(rows), part, np.int64))


def _communication(events: Events, kind: Kind, transfer_ns: Integers) -> Layer:
    """Return collectives, each as its wait and its transfer."""
    rows = np.flatnonzero(events.kind == kind)
    begins, ends = events.begin_ns[rows], events.begin_ns[rows] + events.duration_ns[rows]
    arrived = ends - np.minimum(transfer_ns[rows], events.duration_ns[rows])
    parts = np.repeat(np.array([Part.WAIT, Part.TRANSFER], np.int64), len(rows))
    return _exclusive(np.append(begins, arrived), np.append(arrived, ends), np.tile(rows, 2), parts)


def _exclusive(begins: Integers, ends: Integers, rows: Integers, parts: Integers = _NONE) -> Layer:
    """Return intervals without what an earlier one of them covers."""
    order = np.argsort(begins, kind="stable")
    before = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, ends[order]))[:-1]
    starts = np.maximum(begins[order], before)
    kept = starts < ends[order]
    rows, parts = (one[order][kept] if len(one) else one for one in (rows, parts))
    return starts[kept], ends[order][kept], rows, parts


def _innermost(events: Events, rows: Integers) -> Layer:
    """Return the times of one thread by the innermost event in them."""
    around = parents(events, rows)
    depth = _depth(around)
    begins, ends = events.begin_ns[rows], events.begin_ns[rows] + events.duration_ns[rows]
    times, is_begin = np.append(begins, ends), np.repeat([True, False], len(rows))
    order = np.lexsort((np.where(is_begin, np.tile(depth, 2), -np.tile(depth, 2)), is_begin, times))
    owner = np.append(np.arange(len(rows)), around)[order]
    starts, stops = times[order], np.append(times[order][1:], times[order][-1:])
    kept = (owner != NONE) & (starts < stops)
    return starts[kept], stops[kept], rows[owner[kept]], np.full(int(kept.sum()), Part.WORK, np.int64)


def _depth(parent: Integers) -> Integers:
    depth, above = np.zeros(len(parent), np.int64), parent.copy()
    while (inside := above != NONE).any():
        depth[inside] += 1
        above[inside] = parent[above[inside]]
    return depth


def _pieces(edges: Integers, layers: Sequence[Layer]) -> Intervals:
    """Return begins and lengths of pieces in which no owner changes."""
    points = np.concatenate([edges, *(np.clip(edge, edges[0], edges[-1]) for layer in layers for edge in layer[:2])])
    points = np.unique(points)
    return points[:-1], np.diff(points)


def _covered(layer: Layer, begin: Integers) -> tuple[Integers, Flags]:
    """Return the place in a layer of each piece, and whether it is in it."""
    if not len(layer[0]):
        return np.zeros(len(begin), np.int64), np.zeros(len(begin), bool)
    place = np.searchsorted(layer[0], begin, side="right") - 1
    return place, (place >= 0) & (begin < layer[1][place])


def _next(events: Events, rows: Integers, begin: Integers) -> Integers:
    """Return the first of some events that begins after each piece's begin; NONE."""
    place = np.searchsorted(events.begin_ns[rows], begin, side="right")
    return np.append(rows, NONE)[place]
