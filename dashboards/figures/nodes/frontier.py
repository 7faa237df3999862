"""Time against energy of a workload's runs, and the configurations that no other beats in both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.palette import BLUE, PEER
from crosswind.dashboards.wording import axis_unit, configuration_words, count, percent, quantity, seconds
from crosswind.models.reports.energy import EnergyPoint, RunEnergy

DRAWN = 1000  # runs


@dataclass(frozen=True)
class Frontier:
    """Runs of one workload, and its configurations, the fastest first; `meter` says whose joules these are."""

    name: ClassVar[str] = "frontier"
    workload: str
    meter: str
    runs: tuple[RunEnergy, ...]
    points: tuple[EnergyPoint, ...]

    @property
    def front(self) -> tuple[EnergyPoint, ...]:
        """The configurations that no other beats in time and energy, the fastest first."""
        return tuple(point for point in self.points if point.on_front)

    @property
    def title(self) -> str:
        """The finding."""
        fastest, thriftiest = self.front[0], self.front[-1]
        if fastest == thriftiest:
            return f"The fastest of {count(len(self.points), 'configuration')} of {self.workload} uses least energy"
        saved, longer = 1 - thriftiest.joules / fastest.joules, thriftiest.seconds / fastest.seconds - 1
        return f"{self.workload} can use {percent(saved)} less energy for {percent(longer)} more time"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            f"Time and energy of {count(len(self.runs), 'run')} of {count(len(self.points), 'configuration')}, "
            f"{self.meter}; the line joins the {len(self.front)} that no other beats in both, by their medians."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, the fastest configuration first."""
        rows = (
            (
                configuration_words(point.configuration),
                str(point.world_size or ""),
                str(point.runs),
                seconds(point.seconds),
                quantity(point.joules, "J"),
                "yes" if point.on_front else "no",
            )
            for point in self.points[:TABLE_ROWS]
        )
        return Table(("configuration", "ranks", "runs", "time", "energy", "on the front"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = axis_unit(*(run.seconds for run in self.runs))
        figure = paper(self.title, height=360, x=f"run time, {unit}", y="energy, J")
        runs, front = self.runs[:DRAWN], self.front
        dots = {"color": PEER, "size": 6}
        figure.add_scatter(**_marks(runs, scale), name="runs", mode="markers", marker=dots)
        diamonds = {"color": BLUE, "size": 9, "symbol": "diamond"}
        line = {"color": BLUE, "width": 2}
        figure.add_scatter(**_marks(front, scale), name="front", mode="lines+markers", marker=diamonds, line=line)
        return figure.update_yaxes(exponentformat="SI", rangemode="tozero").update_xaxes(rangemode="tozero")


def _marks(ones: Sequence[RunEnergy] | Sequence[EnergyPoint], scale: float) -> dict[str, object]:
    named = [(one.run_id if isinstance(one, RunEnergy) else count(one.runs, "run"), one) for one in ones]
    texts = [
        f"{label(configuration_words(one.configuration))}<br>{label(name)}: {seconds(one.seconds)}, "
        f"{quantity(one.joules, 'J')}"
        for name, one in named
    ]
    return {
        "x": [one.seconds / scale for one in ones],
        "y": [one.joules for one in ones],
        "customdata": [[name, text] for (name, _), text in zip(named, texts, strict=True)],
        "hovertemplate": "%{customdata[1]}<extra></extra>",
    }


def frontier(workload: str, meter: str, runs: Sequence[RunEnergy], points: Sequence[EnergyPoint]) -> Frontier | None:
    """The figure of a workload, or None without a run of known energy."""
    return Frontier(workload, meter, tuple(runs), tuple(points)) if points else None
