"""The graph of a run's activities, and its replay.

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

WAYS = 3  # dependencies of one activity
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
    part: Integers  # how many matched collectives its rank had begun
    step: Integers  # how many marked steps its rank had begun
    before: Integers  # (n, WAYS): positions of its dependencies; NONE
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
    def binding(self) -> Integers:
        """Return the way of the dependency that ended last, (n,); the first where there is none."""
        before, ends = self.activities.before, self.activities.end_ns
        times = np.where(before == NONE, np.iinfo(np.int64).min, ends[before])
        return np.asarray(np.argmax(times, axis=1))

    @cached_property
    def lag_ns(self) -> Integers:
        """Return the lag of each dependency, (n, WAYS): as measured where it is binding, else none."""
        before, rows = self.activities.before, np.arange(len(self.activities))
        ends = np.where(before == NONE, 0, self.activities.end_ns[before])
        slack = self.activities.begin_ns[:, None] - ends
        lag: Integers = np.minimum(slack, 0)
        lag[rows, self.binding] = slack[rows, self.binding]
        return lag


def replayed(graph: Graph, duration: NDArray[np.float64], lag: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ends of activities, (n,), with other durations (n,) and lags (n, WAYS), ns."""
    before = np.where(graph.activities.before == NONE, len(duration), graph.activities.before)
    ends = [0.0] * (len(duration) + 1)  # the last is the begin of the run
    columns = (*before.T.tolist(), *lag.T.tolist(), duration.tolist())
    for row, (one, two, three, lag_one, lag_two, lag_three, own) in enumerate(zip(*columns, strict=True)):
        begin = ends[one] + lag_one
        if (other := ends[two] + lag_two) > begin:
            begin = other
        if (other := ends[three] + lag_three) > begin:
            begin = other
        ends[row] = begin + own
    return np.array(ends[:-1])
