"""The distribution of a run's time as 20 equally likely ends, with P50, P90 and P95 marked.

Such a quantile dot plot shows the density, and chances can be counted: people choose a time better by it than by a
curve or an interval (Kay et al. 2016, "When (ish) is my bus?"; Fernandes et al. 2018).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, paper
from crosswind.dashboards.palette import BLUE, INK, MUTED, ORANGE, VERMILION
from crosswind.dashboards.wording import axis_unit, percent, seconds
from crosswind.data.schema.answers.predictions import Quantile
from crosswind.models.next_run.quantiles import distribution_of
from crosswind.models.surrogate.exceedance import seconds_at

MARKED = {0.5: ("P50", BLUE, "solid"), 0.9: ("P90", ORANGE, "dashdot"), 0.95: ("P95", VERMILION, "dot")}
ENDS = 20  # as in the studies
COLUMNS = 20  # from the first end to the last or to the limit, in which dots stand above each other
ROWS = 7  # of dots that there is room for at least


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
        return (
            f"{ENDS} equally likely run times: {percent(first.level)} of runs end within {seconds(first.seconds)}, "
            f"{percent(last.level)} within {seconds(last.seconds)}{self._over}."
        )

    @property
    def _over(self) -> str:
        if self.limit_seconds is None:
            return ""
        over = sum(end > self.limit_seconds for end in self.ends)
        return f"; longer than the limit, {seconds(self.limit_seconds)}: {over} of {ENDS}"

    @property
    def table(self) -> Table:
        """The quantiles."""
        rows = tuple((percent(quantile.level), seconds(quantile.seconds)) for quantile in self.quantiles)
        return Table(("share of runs", "end within"), rows)

    @cached_property
    def ends(self) -> tuple[float, ...]:
        """Times that are equally likely, in order; beyond the outermost quantiles as `exceedance` has it."""
        levels = [(nth + 0.5) / ENDS for nth in range(ENDS)]
        return tuple(map(float, seconds_at(distribution_of(self.quantiles), levels)[0]))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = axis_unit(*(quantile.seconds for quantile in self.quantiles))
        figure = paper(self.title, height=320, x=f"run time, {unit}", y=f"a dot is 1 run in {ENDS}")
        limit = np.inf if self.limit_seconds is None else self.limit_seconds
        first, last = self.ends[0], max(self.ends[-1], self.limit_seconds or 0)
        span = max(last - first, last * 1e-6)
        dots = stacked(self.ends, span / COLUMNS)
        top = max(ROWS, *(dot.height for dot in dots)) + 0.5
        figure.add_scatter(**_dots([dot for dot in dots if dot.seconds <= limit], scale, INK, "circle"))
        figure.add_scatter(**_dots([dot for dot in dots if dot.seconds > limit], scale, VERMILION, "diamond"))
        figure.add_scatter(**_ticks(self.quantiles, scale))
        for name, place, line in self._lines():
            figure.add_scatter(**_upright(f"{name} {seconds(place)}", place / scale, top), line={"width": 1.75, **line})
        margin = 0.04 * span
        figure.update_xaxes(range=[(first - margin) / scale, (last + margin) / scale])
        return figure.update_yaxes(range=[0, top], showticklabels=False, showgrid=False, ticks="")

    def _lines(self) -> Iterator[tuple[str, float, dict[str, str]]]:
        for quantile in self.quantiles:
            if quantile.level in MARKED:
                name, colour, dash = MARKED[quantile.level]
                yield name, quantile.seconds, {"color": colour, "dash": dash}
        if self.limit_seconds is not None:
            yield "limit", self.limit_seconds, {"color": INK, "dash": "dash"}


class Dot(NamedTuple):
    """An end: when, and the middle of its column and its height there."""

    seconds: float
    column_seconds: float
    height: int


def stacked(ends: Sequence[float], width: float) -> tuple[Dot, ...]:
    """Place ends, which are in order, in columns of this width in seconds, above each other."""
    heights: Counter[int] = Counter()
    dots = []
    for end in ends:
        column = int((end - ends[0]) / width)
        heights[column] += 1
        dots.append(Dot(end, ends[0] + (column + 0.5) * width, heights[column]))
    return tuple(dots)


def _dots(dots: Sequence[Dot], scale: float, colour: str, symbol: str) -> dict[str, object]:
    return {
        "x": [dot.column_seconds / scale for dot in dots],
        "y": [dot.height for dot in dots],
        "mode": "markers",
        "marker": {"color": colour, "symbol": symbol, "size": 12},
        "showlegend": False,
        "customdata": [seconds(dot.seconds) for dot in dots],
        "hovertemplate": f"1 run in {ENDS}: about %{{customdata}}<extra></extra>",
    }


def _ticks(quantiles: Sequence[Quantile], scale: float) -> dict[str, object]:
    return {
        "x": [quantile.seconds / scale for quantile in quantiles],
        "y": [0.15] * len(quantiles),
        "mode": "markers",
        "marker": {"color": MUTED, "symbol": "line-ns-open", "size": 8, "line": {"width": 1.5}},
        "showlegend": False,
        "customdata": [f"{percent(quantile.level)} within {seconds(quantile.seconds)}" for quantile in quantiles],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _upright(name: str, place: float, top: float) -> dict[str, object]:
    return {"x": [place] * 2, "y": [0, top], "name": name, "mode": "lines", "hoverinfo": "skip"}


def time_distribution(quantiles: Sequence[Quantile], limit_seconds: float | None) -> TimeDistribution:
    """The figure of one run's quantiles, which have the marked levels."""
    return TimeDistribution(tuple(quantiles), limit_seconds)
