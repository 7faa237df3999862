"""Operators by the time of the device that they cause, and by their own time on the host.

Work of the device belongs to the innermost operator around its launch, else to the one whose id it states.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from crosswind.data.schema.steps import NANOSECOND
from crosswind.data.schema.words import duration
from crosswind.data.traces.trace import NONE, Events, Integers, Kind, RankTrace
from crosswind.models.traces.launches import launches
from crosswind.models.traces.nesting import parents, roots
from crosswind.models.traces.ranks import RankSums


@dataclass(frozen=True)
class OperatorTotal:
    """All calls of one operator, over all ranks, ns."""

    name: str
    count: int
    device_own_ns: int  # of work launched by it and by no operator inside of it
    device_ns: int  # with that of operators inside of it; those of its own name counted once
    host_own_ns: int
    host_ns: int
    share: float  # of device_own_ns of all, or of host_own_ns without a device

    @property
    def mean_ns(self) -> float:
        """Return the mean time of the device of one call."""
        return self.device_ns / self.count


@dataclass(frozen=True)
class Operators:
    """Operators by their own time, the longest first."""

    totals: tuple[OperatorTotal, ...]
    ranks: tuple[int, ...]
    unassigned_ns: int  # work of devices of which no operator is known
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OperatorTimes:
    """Times of a trace's operators, one a row, ns."""

    events: Events
    parent: Integers  # position of the operator around it; NONE
    device_own_ns: Integers
    device_ns: Integers
    host_own_ns: Integers
    unassigned_ns: int


def operators(traces: Iterable[RankTrace]) -> Operators:
    """Return totals of operators by name. Raises: InvalidInputError as `ranks_of`."""
    return OperatorSums.of(traces).operators


@dataclass
class OperatorSums(RankSums):
    """Times of operators by name."""

    unassigned_ns: int = 0
    _totals: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0] * 5))

    def add(self, trace: RankTrace) -> None:
        """Add a rank."""
        super().add(trace)
        times = operator_times(trace.events)
        self.unassigned_ns += times.unassigned_ns
        _add(self._totals, trace, times)

    @property
    def operators(self) -> Operators:
        """Return the totals by name."""
        by = 1 if any(row[1] for row in self._totals.values()) else 3
        whole = sum(row[by] for row in self._totals.values()) or 1
        ordered = sorted(self._totals.items(), key=lambda item: -item[1][by])
        rows = [_total(name, row, row[by] / whole) for name, row in ordered]
        lost = self.unassigned_ns
        notes = (f"{duration(lost * NANOSECOND)} of devices belong to no traced operator",) if lost else ()
        return Operators(tuple(rows), self.ranks, lost, notes)


def operator_times(events: Events) -> OperatorTimes:
    """Return the times of each operator of a trace."""
    host = np.flatnonzero(np.isin(events.kind, (Kind.OPERATOR, Kind.CALL, Kind.SYNC)))
    around, is_operator = parents(events, host), events.kind[host] == Kind.OPERATOR
    number = np.append(np.cumsum(is_operator) - 1, NONE)  # the last of these two is for none
    nearest = np.append(roots(around, is_operator), NONE)
    rows = host[is_operator]
    parent = number[nearest[around[is_operator]]]
    owner = _owners(events, host, number[nearest], rows)
    return _times(events, rows, parent, owner)


def _owners(events: Events, host: Integers, operator: Integers, rows: Integers) -> Integers:
    """Return of each work of devices the number of its operator, or NONE; `operator` is that of each of host's."""
    pairs = launches(events)
    place = np.searchsorted(host, pairs.call)
    owner = np.where(pairs.call == NONE, NONE, operator[np.where(pairs.call == NONE, -1, place)])
    ids, stated = events.operator[rows], events.operator[pairs.device]
    order = np.argsort(ids, kind="stable")
    if len(rows):
        last = order[np.maximum(np.searchsorted(ids[order], stated, side="right") - 1, 0)]
        owner = np.where((owner == NONE) & (stated != NONE) & (ids[last] == stated), last, owner)
    return owner


def _times(events: Events, rows: Integers, parent: Integers, owner: Integers) -> OperatorTimes:
    durations, mine = events.duration_ns[events.kind <= Kind.COPY], events.where(rows)
    own = _sums(owner, durations, len(rows))
    host_own = np.maximum(mine.duration_ns - _sums(parent, mine.duration_ns, len(rows)), 0)
    whole = own.copy()
    for inner in _deepest_first(parent):
        np.add.at(whole, parent[inner], whole[inner])
    return OperatorTimes(mine, parent, own, whole, host_own, int(durations[owner == NONE].sum()))


def _sums(place: Integers, values: Integers, count: int) -> Integers:
    sums: Integers = np.zeros(count + 1, np.int64)
    np.add.at(sums, place, values)  # NONE is the last, which is left out
    return sums[:-1]


def _deepest_first(parent: Integers) -> list[Integers]:
    """Return positions of operators inside of others, by depth, the deepest first."""
    depth, above = np.zeros(len(parent), np.int64), parent.copy()
    while (inside := above != NONE).any():
        depth[inside] += 1
        above[inside] = parent[above[inside]]
    return [np.flatnonzero(depth == level) for level in range(int(depth.max(initial=0)), 0, -1)]


def _total(name: str, row: list[int], share: float) -> OperatorTotal:
    count, device_own, device, host_own, host = row
    return OperatorTotal(name, count, device_own, device, host_own, host, share)


def _add(totals: dict[str, list[int]], trace: RankTrace, times: OperatorTimes) -> None:
    names, count = times.events.name, len(trace.names)
    is_outermost = _is_outermost_of_name(times)
    columns = (
        np.ones(len(names), np.int64),
        times.device_own_ns,
        times.device_ns * is_outermost,
        times.host_own_ns,
        times.events.duration_ns * is_outermost,
    )
    sums = np.stack([_sums(names.astype(np.int64), column, count) for column in columns], axis=1)
    for code in np.flatnonzero(sums[:, 0]).tolist():
        row = totals[trace.names[code]]
        row[:] = [one + other for one, other in zip(row, sums[code].tolist(), strict=True)]


def _is_outermost_of_name(times: OperatorTimes) -> np.ndarray:
    """Return which operators are in none of their own name, so that recursion is not counted twice."""
    names, above = times.events.name, times.parent.copy()
    outermost = np.ones(len(names), bool)
    while (inside := above != NONE).any():
        outermost[inside] &= names[above[inside]] != names[inside]
        above[inside] = times.parent[above[inside]]
    return outermost
