"""The critical path of a run across its ranks: the chain of activities that took all of its time.

From the last end back, each time to the dependency that ended last. A collective leads to the rank that arrived last,
so that the waits of the others are not on the path. Segments sum to the span exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.traces.trace import NONE, Codes, Integers, RankTrace
from crosswind.models.traces.graph.build import graph as graph_of
from crosswind.models.traces.graph.graph import Graph, Work, Works


@dataclass(frozen=True)
class CriticalPath:
    """Segments in the order of time, (n,) each; times from the run's begin, on aligned clocks."""

    ranks: tuple[int, ...]
    names: tuple[str, ...]
    begin_ns: Integers
    length_ns: Integers
    work: Works
    rank: Codes  # index into ranks
    name: Codes  # index into names, of the work or of what was waited for; NONE
    notes: tuple[str, ...] = ()

    @property
    def span_ns(self) -> int:
        """Return the length of all segments."""
        return int(self.length_ns.sum())

    @property
    def by_work(self) -> dict[Work, int]:
        """Return the time of each class, ns, the longest first."""
        totals: Integers = np.zeros(len(Work), np.int64)
        np.add.at(totals, self.work, self.length_ns)
        return {Work(one): int(totals[one]) for one in np.argsort(-totals, kind="stable").tolist() if totals[one]}

    @property
    def by_rank(self) -> dict[int, int]:
        """Return the time on each rank, ns, in the order of ranks."""
        totals: Integers = np.zeros(len(self.ranks), np.int64)
        np.add.at(totals, self.rank, self.length_ns)
        return dict(zip(self.ranks, totals.tolist(), strict=True))

    def by_name(self, limit: int = 10) -> list[tuple[str, int]]:
        """Return the names with the longest time on the path, ns."""
        totals: Integers = np.zeros(len(self.names) + 1, np.int64)
        np.add.at(totals, self.name, self.length_ns)
        longest = np.argsort(-totals[:-1], kind="stable")[:limit].tolist()
        return [(self.names[one], int(totals[one])) for one in longest if totals[one]]


def critical_path(traces: Sequence[RankTrace]) -> CriticalPath:
    """Return the critical path of the traces of one run. Raises: InvalidInputError as `ranks_of`."""
    return path_of(graph_of(traces))


def path_of(graph: Graph) -> CriticalPath:
    """Return the critical path of a graph."""
    rows = _rows(graph)
    activities = graph.activities
    before, lag = graph.before_by(rows)
    lag_work = np.where(before == NONE, Work.START, activities.lag_work[rows, graph.binding[rows]])
    begins = np.stack([activities.begin_ns[rows] - lag, activities.begin_ns[rows]], axis=1).ravel()
    lengths = np.stack([lag, activities.duration_ns[rows]], axis=1).ravel()
    work = np.stack([lag_work, activities.work[rows]], axis=1).ravel().astype(np.uint8)
    some = lengths != 0
    rank, name = (np.repeat(column[rows], 2) for column in (activities.rank, activities.name))
    columns = (begins[some], lengths[some], work[some], rank[some], name[some])
    return CriticalPath(graph.ranks, graph.names, *columns, notes=graph.notes)


def _rows(graph: Graph) -> Integers:
    """Return the activities on the path, in the order of time."""
    activities, rows = graph.activities, []
    row = int(np.argmax(activities.end_ns)) if len(activities) else NONE
    while row != NONE:
        rows.append(row)
        row = int(activities.before[row, graph.binding[row]])
    return np.array(rows[::-1], np.int64)
