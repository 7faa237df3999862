"""The graph of a run's activities.

An activity begins when all that it depends on has ended, each plus a lag. The dependency that ended last carries the
lag that was measured, so that a replay without a change gives the measured times exactly.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crosswind.data.traces.trace import NONE, Codes, Integers
from crosswind.models.traces.graph.runs import Runs, runs_of

WAYS = 3  # dependencies of one activity
Works: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float64]


class Work(IntEnum):
    """The class of an activity's time, or of a lag before it."""

    START = 0  # before the first event of a rank
    COMPUTE = 1  # a kernel
    COPY = 2
    TRANSFER = 3  # a collective, from the last arrival on
    HOST = 4  # between two calls on the host
    OPERATOR = 5  # on a host without a device
    LAUNCH = 6  # from a call to the begin of its work
    QUEUE = 7  # a device's gap after what it waited for
    SYNC = 8  # from the end of the device's work to the return of the call that waited
    NOTHING = 9  # of points in time


@dataclass(frozen=True)
class Activities:
    """Activities, one a row, each after all that it depends on; times on aligned clocks, from the run's begin."""

    begin_ns: Integers
    duration_ns: Integers
    work: Works  # of the duration
    rank: Codes  # index into the graph's ranks
    name: Codes  # index into the graph's names; NONE
    part: Codes  # how many matched collectives its rank had begun
    step: Codes  # how many marked steps its rank had begun
    before: Codes  # (n, WAYS): positions of its dependencies; NONE
    lag_work: Works  # (n, WAYS)

    def __len__(self) -> int:
        return len(self.begin_ns)

    @property
    def end_ns(self) -> Integers:
        """Return the ends as measured."""
        return self.begin_ns + self.duration_ns


@dataclass(frozen=True)
class Graph:
    """The activities of several ranks."""

    ranks: tuple[int, ...]
    names: tuple[str, ...]
    activities: Activities
    steps: int  # in which the run is measured; 1 where none are marked
    notes: tuple[str, ...] = ()

    @property
    def span_ns(self) -> int:
        """Return the time from the first begin to the last end, as measured."""
        return int(self.activities.end_ns.max(initial=0))

    @cached_property
    def binding(self) -> NDArray[np.int8]:
        """Return the way of the dependency that ended last, (n,); the first where there is none."""
        ends, latest = self.activities.end_ns, np.full(len(self.activities), np.iinfo(np.int64).min)
        binding = np.zeros(len(self.activities), np.int8)
        for way in range(WAYS):
            before = self.activities.before[:, way]
            is_later = (before != NONE) & (ends[before] > latest)
            latest[is_later], binding[is_later] = ends[before[is_later]], way
        return binding

    def lag_ns(self, rows: Integers) -> Integers:
        """Return the lag of each dependency of activities, (k, WAYS): as measured if it is binding, else none."""
        before, binding = self.activities.before[rows], self.binding[rows]
        ends = np.where(before == NONE, 0, self._end_ns[before])
        slack = self.activities.begin_ns[rows][:, None] - ends
        lag: Integers = np.minimum(slack, 0)
        place = np.arange(len(lag))
        lag[place, binding] = slack[place, binding]
        return lag

    def before_by(self, rows: Integers) -> tuple[Codes, Integers]:
        """Return the binding dependency of activities, positions or NONE, and its lag in ns, (n,) each."""
        before = self.activities.before[rows, self.binding[rows]]
        ends = np.where(before == NONE, 0, self._end_ns[before])
        return before, np.asarray(self.activities.begin_ns[rows] - ends)

    @cached_property
    def way(self) -> Integers:
        """Return the way of the dependency in whose run an activity may go on, (n,): points at collectives join up."""
        is_join = (self.activities.lag_work[:, 1] == Work.TRANSFER) & (self.activities.before[:, 1] != NONE)
        return np.asarray(is_join, np.int64)

    @cached_property
    def runs(self) -> Runs:
        """Return the runs in which the activities are replayed."""
        return runs_of(self.activities.before, self.way)

    @cached_property
    def ns_by_part(self) -> Floats:
        """Return the time of each rank in each part, (n_ranks, n_parts, classes): durations and binding lags."""
        return self._ns_by(self.activities.part)

    @cached_property
    def ns_by_step(self) -> Floats:
        """Return the same in each step, (n_ranks, n_steps, classes)."""
        return self._ns_by(self.activities.step)

    def _ns_by(self, parts: Codes) -> Floats:
        activities, rows, count = self.activities, np.arange(len(parts)), int(parts.max(initial=0)) + 1
        cell = (activities.rank.astype(np.int64) * count + parts) * len(Work)
        size = len(self.ranks) * count * len(Work)
        sums = np.bincount(cell + activities.work, activities.duration_ns, size).astype(np.float64)
        sums += np.bincount(cell + activities.lag_work[rows, self.binding], self.before_by(rows)[1], size)
        return sums.reshape(-1, count, len(Work))

    @cached_property
    def _end_ns(self) -> Integers:
        return self.activities.end_ns
