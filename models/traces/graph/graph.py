"""The graph of a run's activities, and its replay.

An activity begins when all that it depends on has ended, each plus a lag. The dependency that ended last carries the
lag that was measured, so that a replay without a change gives the measured times exactly.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crosswind.data.traces.trace import NONE, Codes, Integers

WAYS = 3  # dependencies of one activity
BLOCK = 1 << 14  # activities that are in memory as objects at once
Works: TypeAlias = NDArray[np.uint8]


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

    def lag_ns(self, rows: slice = slice(None)) -> Integers:
        """Return the lag of each dependency of some activities, (n, WAYS): as measured if it is binding, else none."""
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
    def _end_ns(self) -> Integers:
        return self.activities.end_ns


Factors: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]  # on durations (k,), on lags (k, WAYS)
Scale: TypeAlias = Callable[[slice], Factors]


def replayed(graph: Graph, scale: Scale) -> NDArray[np.float64]:
    """Return the ends of activities, (n,) ns, with other durations and lags.

    `scale` returns the factors on durations (k,) and on lags (k, WAYS) of k consecutive activities.
    """
    ends = array("d", bytes(8 * (len(graph.activities) + 1)))  # the last is the begin of the run
    for first in range(0, len(graph.activities), BLOCK):
        rows = slice(first, min(first + BLOCK, len(graph.activities)))
        _replay(graph, rows, scale(rows), ends)
    return np.frombuffer(ends)[:-1]


def _replay(graph: Graph, rows: slice, factors: Factors, ends: "array[float]") -> None:
    activities, lag = graph.activities, graph.lag_ns(rows)
    scaled = np.where(lag > 0, lag * factors[1], lag)  # clocks that disagree are not scaled
    before = activities.before[rows]
    columns = (*before.T.tolist(), *scaled.T.tolist(), (activities.duration_ns[rows] * factors[0]).tolist())
    for row, (one, two, three, lag_one, lag_two, lag_three, own) in enumerate(zip(*columns, strict=True), rows.start):
        begin = ends[one] + lag_one
        if (other := ends[two] + lag_two) > begin:
            begin = other
        if (other := ends[three] + lag_three) > begin:
            begin = other
        ends[row] = begin + own
