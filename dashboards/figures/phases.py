"""The use of each rank's time: the phases of its steps."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, paper, rounded
from crosswind.dashboards.palette import PHASE_COLOURS, PHASE_PATTERNS, hatched
from crosswind.dashboards.wording import percent, seconds, unit_of
from crosswind.data.schema.steps import PHASES

MOST_RANKS = 64
COMM = "comm"


@dataclass(frozen=True)
class RankPhases:
    """Mean seconds a step of one rank, by phase in the order of PHASES."""

    rank: int
    seconds: tuple[float, ...]

    @property
    def local_seconds(self) -> float:
        """Everything but exposed communication: what the other ranks wait for."""
        return sum(self.seconds) - self.seconds[PHASES.index(COMM)]


@dataclass(frozen=True)
class PhaseStack:
    """The phases of each rank's mean step; of more than 64 ranks, those with the longest local time."""

    name: ClassVar[str] = "phases"
    ranks: tuple[RankPhases, ...]
    rank_count: int

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases that took any time."""
        return tuple(name for name, column in zip(PHASES, self._columns, strict=True) if any(column))

    @property
    def _columns(self) -> list[tuple[float, ...]]:
        return list(zip(*(row.seconds for row in self.ranks), strict=True))

    @property
    def title(self) -> str:
        """The finding."""
        slowest = max(self.ranks, key=lambda row: row.local_seconds)
        totals = [sum(column) for column in self._columns]
        largest = max(range(len(PHASES)), key=lambda place: totals[place])
        if len(self.ranks) == 1:
            share = percent(totals[largest] / sum(totals)) if sum(totals) else percent(None)
            return f"{PHASES[largest].capitalize()} takes {share} of a step"
        return f"Rank {slowest.rank} needs longest before it communicates: {seconds(slowest.local_seconds)} a step"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        shown = "" if self.rank_count == len(self.ranks) else f" ({len(self.ranks)} of {self.rank_count} ranks)"
        return f"Mean time a step by rank{shown}, split into {', '.join(self.phases)}; the phases sum to the step."

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a rank."""
        rows = tuple(
            (str(row.rank), *(seconds(value) for value in row.seconds), seconds(sum(row.seconds)))
            for row in self.ranks[:TABLE_ROWS]
        )
        return Table(("rank", *PHASES, "step"), rows)

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*(sum(row.seconds) for row in self.ranks))
        height = int(min(640, max(210, 118 + 32 * len(self.ranks))))
        figure = paper(self.title, height=height, x=f"mean time a step, {unit}", y="rank")
        names = [str(row.rank) for row in self.ranks]
        for phase in self.phases:
            place = PHASES.index(phase)
            pattern = hatched(*[PHASE_PATTERNS[phase]] * len(names))
            figure.add_bar(
                orientation="h",
                y=names,
                x=rounded([row.seconds[place] for row in self.ranks], scale),
                name=phase,
                marker={"color": PHASE_COLOURS[phase], "pattern": pattern, "line": {"width": 0}},
                hovertemplate=f"rank %{{y}}, {phase}: %{{x:.3~g}} {unit}<extra></extra>",
            )
        figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
        return figure.update_layout(barmode="stack", bargap=0.35, legend={"traceorder": "normal"})


def phase_stack(ranks: pd.DataFrame) -> PhaseStack | None:
    """The stack of a run, or None without steps; columns rank and the mean `<phase>_seconds` a phase, a row a rank."""
    if ranks.empty:
        return None
    means = ranks[[f"{phase}_seconds" for phase in PHASES]].fillna(0.0)
    values = zip(ranks["rank"], means.to_numpy(float), strict=True)
    rows = [RankPhases(int(rank), tuple(float(value) for value in row)) for rank, row in values]
    longest = sorted(rows, key=lambda row: -row.local_seconds)[:MOST_RANKS]
    return PhaseStack(tuple(sorted(longest, key=lambda row: row.rank)), len(rows))
