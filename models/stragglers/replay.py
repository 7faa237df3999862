"""Replay of steps from the operations of their ranks: their time if the ranks were equal.

An operation arrives when those before it on its rank have ended; ranks that meet in one (a collective, a transfer) end
together, as long after the last arrival as the shortest of their durations, for the last rank waited least. Time
between operations is left out on both sides of the comparison.

Source: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025, section 3.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.answers.stragglers import Slowdown
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

COLUMNS = ("step", "rank", "stage", "operation", "number", "meeting", "start", "duration")
TOGETHER = 1e-6  # seconds: operations of a rank that begin within it are one launch


@dataclass(frozen=True)
class _Graph:
    """The operations of all steps: each one's launch and meeting, and of each launch the one before it, or -1."""

    launch: NDArray[np.int64]
    meeting: NDArray[np.int64]
    before: NDArray[np.int64]
    step: NDArray[np.int64]  # of each launch
    order: tuple[int, ...]  # of meetings, dependencies first


@dataclass(frozen=True)
class OperationReplay:
    """The operations of a run's steps, and how long they take as measured and with equal ranks, (n,) seconds each."""

    rows: pd.DataFrame
    graph: _Graph
    own: Floats
    equal: Floats

    @classmethod
    def of(cls, operations: pd.DataFrame) -> Self:
        """A replay of operations, one a row, with the columns of COLUMNS; start and duration in seconds.

        `number` counts a rank's operations of one kind in a step; operations of one step and `meeting` end together
        (null: the rank's own). Equal means: every operation takes the mean of its kind and number over all ranks and
        steps, where ranks meet the median.
        Raises: InvalidInputError for missing columns, or ranks that wait for each other in a ring.
        """
        missing = [name for name in COLUMNS if name not in operations]
        if missing or operations.empty:
            raise InvalidInputError(f"operations: expected a row at least and {', '.join(missing or COLUMNS)}")
        rows = operations.sort_values(["step", "rank", "start"], kind="stable").reset_index(drop=True)
        graph = _graph(rows)
        own = _least(graph, rows["duration"].to_numpy(np.float64))
        return cls(rows, graph, own, _equal(rows, own, graph))

    @property
    def measured_seconds(self) -> float:
        """The mean seconds of a step as measured, without the time between operations."""
        return _seconds(self.graph, self.own)

    @property
    def ideal_seconds(self) -> float:
        """The mean seconds of a step with equal ranks."""
        return _seconds(self.graph, self.equal)

    def alone_seconds(self, column: str, value: int) -> float:
        """The mean seconds of a step if one rank or stage alone is as measured."""
        return _seconds(self.graph, np.where(self.rows[column].to_numpy() == value, self.own, self.equal))

    def mended_seconds(self, column: str, value: int) -> float:
        """The mean seconds of a step if one rank or stage is as the others."""
        return _seconds(self.graph, np.where(self.rows[column].to_numpy() == value, self.equal, self.own))

    def replayed_seconds(self, durations: Floats) -> float:
        """The mean seconds of a step if the operations took these, (n,) seconds after all of a meeting had arrived."""
        return _seconds(self.graph, durations)

    def slowest_ranks(self) -> list[int]:
        """The ranks by how much longer their operations take than with equal ranks, the slowest first."""
        excess = pd.Series(self.own - self.equal).groupby(self.rows["rank"].to_numpy()).sum()
        return [int(rank) for rank in excess.sort_values(ascending=False, kind="stable").index]


def replayed_slowdown(operations: pd.DataFrame) -> Slowdown:
    """S of a run from its operations, of the whole, of each rank and of each stage. Raises: as `OperationReplay.of`."""
    replay = OperationReplay.of(operations)
    ranks, stages = (np.unique(replay.rows[column].to_numpy()) for column in ("rank", "stage"))
    measured, ideal = replay.measured_seconds, replay.ideal_seconds
    alone = [replay.alone_seconds("rank", rank) / ideal for rank in ranks]
    without = [measured / replay.mended_seconds("rank", rank) for rank in ranks]
    of_group = [replay.alone_seconds("stage", stage) / ideal for stage in stages]
    return Slowdown(measured / ideal, tuple(alone), tuple(without), tuple(of_group))


def _equal(rows: pd.DataFrame, own: Floats, graph: _Graph) -> Floats:
    """Durations equalised by kind and number over ranks and steps, (n,): the mean, the median where ranks meet."""
    by = pd.Series(own).groupby([rows["operation"].astype(str), rows["number"]])
    meets = np.bincount(graph.meeting)[graph.meeting] > 1
    return np.where(meets, by.transform("median"), by.transform("mean"))


def _graph(rows: pd.DataFrame) -> _Graph:
    keys = [rows["step"], rows["rank"]]
    is_new = rows["start"].groupby(keys).diff().gt(TOGETHER) | rows.groupby(["step", "rank"]).cumcount().eq(0)
    launch = is_new.cumsum().to_numpy(np.int64) - 1
    heads = rows[is_new.to_numpy()]
    is_first = heads.groupby(["step", "rank"]).cumcount().eq(0).to_numpy()
    before = np.where(is_first, -1, np.arange(len(heads)) - 1)
    alone = pd.Series([f"#{row}" for row in range(len(rows))], index=rows.index)
    names = rows["meeting"].astype(object).where(rows["meeting"].notna(), alone).astype(str)
    meeting = pd.factorize(rows["step"].astype(str) + " " + names)[0].astype(np.int64)
    order = _order(launch, meeting, before)
    return _Graph(launch, meeting, before, heads["step"].to_numpy(np.int64), tuple(order))


def _order(launch: NDArray[np.int64], meeting: NDArray[np.int64], before: NDArray[np.int64]) -> list[int]:
    """Sort meetings so that those of a launch come after those of the launch before. Raises: InvalidInputError."""
    held: dict[int, set[int]] = defaultdict(set)
    for one, other in zip(launch.tolist(), meeting.tolist(), strict=True):
        held[one].add(other)
    sorter = TopologicalSorter[int]()
    for number, earlier in enumerate(before.tolist()):
        for later in held[number]:
            sorter.add(later, *(held[earlier] if earlier >= 0 else ()))
    try:
        return list(sorter.static_order())
    except CycleError as error:
        raise InvalidInputError("operations: ranks wait for each other in a ring: expected an order") from error


def _least(graph: _Graph, durations: Floats) -> Floats:
    return np.asarray(pd.Series(durations).groupby(graph.meeting).transform("min"), dtype=np.float64)


def _seconds(graph: _Graph, durations: Floats) -> float:
    """The mean seconds of the steps, if the operations took `durations` after all had arrived."""
    order = np.argsort(graph.meeting, kind="stable")
    bounds = np.searchsorted(graph.meeting[order], np.arange(len(graph.order) + 1))
    longest = np.maximum.reduceat(durations[order], bounds[:-1])
    launch, before = graph.launch[order].tolist(), graph.before.tolist()
    ends = [0.0] * len(before)
    for meeting in graph.order:
        members: Sequence[int] = launch[bounds[meeting] : bounds[meeting + 1]]
        end = max(ends[before[one]] if before[one] >= 0 else 0.0 for one in members) + float(longest[meeting])
        for one in members:
            ends[one] = max(ends[one], end)
    return float(pd.Series(ends).groupby(graph.step).max().mean())
