"""The distribution of a run's time: the share of runs that end within each time, with P50, P90 and P95 marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, paper
from crosswind.dashboards.palette import BLUE, INK, ORANGE, VERMILION
from crosswind.dashboards.wording import axis_unit, percent, seconds
from crosswind.data.schema.answers.predictions import Quantile

MARKED = {0.5: ("P50", BLUE, "circle"), 0.9: ("P90", ORANGE, "diamond"), 0.95: ("P95", VERMILION, "square")}


@dataclass(frozen=True)
class TimeDistribution:
    """Predicted quantiles of a run's time, and the time limit of the run itself, without its start."""

    name: ClassVar[str] = "distribution"
    quantiles: tuple[Quantile, ...]
    limit_seconds: float | None

    @property
    def title(self) -> str:
        """The finding."""
        within = {quantile.level: seconds(quantile.seconds) for quantile in self.quantiles}
        return f"Half of such runs end within {within[0.5]}, nine of ten within {within[0.9]}"

    @property
    def sentence(self) -> str:
        """The figure in words."""
        first, last = self.quantiles[0], self.quantiles[-1]
        limit = "" if self.limit_seconds is None else f"; the dashed line is the limit, {seconds(self.limit_seconds)}"
        return (
            f"Predicted share of runs that end within a time, from {seconds(first.seconds)} ({percent(first.level)}) "
            f"to {seconds(last.seconds)} ({percent(last.level)}){limit}."
        )

    @property
    def table(self) -> Table:
        """The quantiles."""
        rows = tuple((percent(quantile.level), seconds(quantile.seconds)) for quantile in self.quantiles)
        return Table(("share of runs", "end within"), rows)

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = axis_unit(*(quantile.seconds for quantile in self.quantiles))
        figure = paper(self.title, height=320, x=f"run time, {unit}", y="share of runs that end within it, %")
        times = [quantile.seconds / scale for quantile in self.quantiles]
        shares = [100 * quantile.level for quantile in self.quantiles]
        line = {"color": INK, "width": 1.75}
        figure.add_scatter(x=times, y=shares, mode="lines", line=line, showlegend=False, hoverinfo="skip")
        for quantile in self.quantiles:
            if quantile.level in MARKED:
                figure.add_scatter(**_mark(quantile, scale))
        if self.limit_seconds is not None:
            dashes = {"color": INK, "width": 1.25, "dash": "dash"}
            place = self.limit_seconds / scale
            figure.add_scatter(x=[place] * 2, y=[0, 100], mode="lines", line=dashes, name="limit", hoverinfo="skip")
        return figure.update_yaxes(range=[0, 104])


def _mark(quantile: Quantile, scale: float) -> dict[str, object]:
    name, colour, symbol = MARKED[quantile.level]
    return {
        "x": [quantile.seconds / scale],
        "y": [100 * quantile.level],
        "name": f"{name} {seconds(quantile.seconds)}",
        "mode": "markers",
        "marker": {"color": colour, "symbol": symbol, "size": 11},
        "hovertemplate": f"{name}: {seconds(quantile.seconds)}<extra></extra>",
    }


def time_distribution(quantiles: Sequence[Quantile], limit_seconds: float | None) -> TimeDistribution:
    """The figure of one run's quantiles, which have the marked levels."""
    return TimeDistribution(tuple(quantiles), limit_seconds)
