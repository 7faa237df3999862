"""The causes to which a cohort's slow runs lost their time."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, label, paper
from crosswind.dashboards.palette import ORANGE, VERMILION
from crosswind.dashboards.wording import axis_unit, count, percent, seconds
from crosswind.data.schema.words import opening, words


@dataclass(frozen=True)
class CauseTotal:
    """The total of one cause over some slow runs: seconds, and in how many runs it was the main cause."""

    cause: str
    seconds: float
    runs: int


@dataclass(frozen=True)
class CauseTotals:
    """Seconds lost by cause over a cohort's slow runs, most first."""

    name: ClassVar[str] = "causes"
    totals: tuple[CauseTotal, ...]
    slow_runs: int
    explained_runs: int

    @property
    def title(self) -> str:
        """The finding."""
        first, whole = self.totals[0], sum(total.seconds for total in self.totals)
        share = f", {percent(first.seconds / whole)} of what was lost" if whole > 0 else ""
        return f"{opening(first.cause)} took the most time: {seconds(first.seconds)}{share}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return f"Time lost by cause over {count(self.slow_runs, 'slow run')} of {self.explained_runs} explained."

    @property
    def table(self) -> Table:
        """The numbers drawn."""
        rows = ((words(total.cause), seconds(total.seconds), str(total.runs)) for total in self.totals)
        return Table(("cause", "time lost", "main cause of runs"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = axis_unit(*(total.seconds for total in self.totals))
        figure = paper(self.title, height=100 + 36 * len(self.totals), x=f"time lost, {unit}", y="")
        figure.add_bar(
            orientation="h",
            y=[label(words(total.cause)) for total in self.totals],
            x=[total.seconds / scale for total in self.totals],
            marker={"color": [VERMILION, *[ORANGE] * (len(self.totals) - 1)], "line": {"width": 0}},
            text=[f" {seconds(total.seconds)}" for total in self.totals],
            textposition="outside",
            cliponaxis=False,
            hovertext=[
                f"{label(words(total.cause))}: {seconds(total.seconds)}, main cause of {count(total.runs, 'run')}"
                for total in self.totals
            ],
            hoverinfo="text",
        )
        largest = max(total.seconds for total in self.totals) / scale
        figure.update_xaxes(range=[0, largest * 1.22])
        return figure.update_yaxes(autorange="reversed", showgrid=False).update_layout(showlegend=False, bargap=0.4)


def cause_totals(shares: pd.DataFrame, *, explained_runs: int) -> CauseTotals | None:
    """The totals over slow runs, or None when nothing was lost.

    Args:
        shares: columns run_id, cause, seconds, is_main: the shares of the slow runs, unexplained among them.
        explained_runs: how many runs, slow or not, were explained.
    """
    lost = shares[shares["seconds"] > 0]
    if lost.empty:
        return None
    totals = (
        lost.groupby("cause")
        .agg(seconds=("seconds", "sum"), runs=("is_main", "sum"))
        .sort_values("seconds", ascending=False)
    )
    rows = tuple(CauseTotal(str(cause), float(row["seconds"]), int(row["runs"])) for cause, row in totals.iterrows())
    return CauseTotals(rows, int(shares["run_id"].nunique()), explained_runs)
