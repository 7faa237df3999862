"""The time of each recorded step on each traced rank, and how much of it is exposed wait for other ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, add_heat, paper, rounded
from crosswind.dashboards.figures.traces.bars import MOST_PIXELS, NANOSECONDS, time
from crosswind.dashboards.wording import count, times, unit_of
from crosswind.data.schema.answers.traces import TracedRank

MOST_RANKS, MOST_COLUMNS, TABLE_STEPS = 128, 150, 12


@dataclass(frozen=True)
class StepsOfRanks:
    """Durations of recorded steps, `ns[rank][column]`, None where a rank has fewer; a column is the longest of some."""

    name: ClassVar[str] = "turns"
    ranks: tuple[int, ...]
    ns: tuple[tuple[int | None, ...], ...]
    steps_a_column: int
    rank_count: int

    @property
    def columns(self) -> tuple[int, ...]:
        """The first step of each column, from 1."""
        return tuple(1 + place * self.steps_a_column for place in range(len(self.ns[0])))

    @property
    def title(self) -> str:
        """The finding."""
        means = [mean(value for value in column if value is not None) for column in zip(*self.ns, strict=True)]
        longest = max(range(len(means)), key=lambda place: means[place])
        usual = median(means)
        ratio = f", {times(means[longest] / usual)} the median" if usual > 0 else ""
        return f"Step {self.columns[longest]} takes longest: {time(means[longest])}{ratio}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return f"Time of {self._steps} that the traces mark, by rank{self._shown}.{self._cell}"

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a rank, of the first steps."""
        columns = self.columns[:TABLE_STEPS]
        rows = zip(self.ranks[:TABLE_ROWS], self.ns[:TABLE_ROWS], strict=True)
        return Table(
            ("rank", *(f"step {step}" for step in columns)),
            tuple((str(rank), *(time(ns) for ns in row[:TABLE_STEPS])) for rank, row in rows),
        )

    @property
    def _steps(self) -> str:
        return count(len(self.ns[0]), "step") if self.steps_a_column == 1 else "the steps"

    @property
    def _shown(self) -> str:
        return "" if self.rank_count == len(self.ranks) else f", {len(self.ranks)} of {self.rank_count} of them"

    @property
    def _cell(self) -> str:
        return "" if self.steps_a_column == 1 else f" A cell is the longest of {self.steps_a_column} steps."

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*(ns / NANOSECONDS for row in self.ns for ns in row if ns is not None))
        height = min(MOST_PIXELS, 150 + 28 * len(self.ranks))
        figure = paper(self.title, height=height, x="recorded step", y="rank")
        add_heat(
            figure,
            z=[rounded([None if ns is None else ns / NANOSECONDS for ns in row], scale, digits=3) for row in self.ns],
            x=list(self.columns),
            y=[str(rank) for rank in self.ranks],
            unit=unit,
            hover=f"rank %{{y}}, step %{{x}}: %{{z:.3~g}} {unit}",
        )
        whole = {"tickmode": "linear", "tick0": 1, "dtick": 1} if len(self.columns) <= TABLE_STEPS else {}
        return figure.update_xaxes(**whole).update_yaxes(fixedrange=True)


@dataclass(frozen=True)
class WaitsOfRanks(StepsOfRanks):
    """The exposed waits in the same form."""

    name: ClassVar[str] = "exposed"

    @property
    def title(self) -> str:
        """The finding."""
        waits = {
            (ns, rank, step)
            for rank, row in zip(self.ranks, self.ns, strict=True)
            for step, ns in zip(self.columns, row, strict=True)
            if ns is not None
        }
        longest, rank, step = max(waits)
        return f"Rank {rank} waits longest, {time(longest)} in step {step}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            f"Wait in collectives for the last rank to arrive while nothing is computed, in {self._steps} that the "
            f"traces mark, by rank{self._shown}.{self._cell} A rank that waits less than the others makes them wait."
        )


def steps_of_ranks(ranks: Sequence[TracedRank]) -> StepsOfRanks | None:
    """Return the figure; None where no rank marks two steps. Of many ranks the first are shown."""
    shown = _rows(ranks, [rank.step_ns for rank in ranks])
    return None if shown is None else StepsOfRanks(*shown)


def waits_of_ranks(ranks: Sequence[TracedRank]) -> WaitsOfRanks | None:
    """Return the figure; None where no rank marks two steps, or none waits."""
    waits = [rank.step_wait_ns for rank in ranks]
    shown = _rows(ranks, waits) if any(map(any, waits)) else None
    return None if shown is None else WaitsOfRanks(*shown)


def _rows(
    ranks: Sequence[TracedRank], times: Sequence[tuple[int, ...]]
) -> tuple[tuple[int, ...], tuple[tuple[int | None, ...], ...], int, int] | None:
    """Return the ranks that mark steps, their cells, the steps in each, and the number of all ranks."""
    marked = [(rank.rank, ns) for rank, ns in zip(ranks, times, strict=True) if ns][:MOST_RANKS]
    longest = max((len(ns) for _, ns in marked), default=0)
    if longest < 2:
        return None
    size = -(-longest // MOST_COLUMNS)
    cells = tuple(_columns(ns, size, -(-longest // size)) for _, ns in marked)
    return tuple(rank for rank, _ in marked), cells, size, len(ranks)


def _columns(ns: Sequence[int], size: int, columns: int) -> tuple[int | None, ...]:
    parts = (ns[place * size : (place + 1) * size] for place in range(columns))
    return tuple(max(part) if part else None for part in parts)
