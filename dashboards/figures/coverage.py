"""The accuracy of a model: coverage of its quantiles, and its loss next to the naive baselines'."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.palette import BLUE, PEER, VERMILION
from crosswind.dashboards.wording import count, percent

Z = 1.959964  # the normal distribution's 97.5 % point: intervals of 95 %


@dataclass(frozen=True)
class CoveragePoint:
    """The share of runs at or below the quantile of a level, with its 95 % interval."""

    level: float
    share: float
    low: float
    high: float

    @property
    def is_off(self) -> bool:
        """Return whether the level lies outside the share's interval."""
        return not self.low <= self.level <= self.high


@dataclass(frozen=True)
class Coverage:
    """The share of validation runs at or below each quantile of a model, next to the promised share."""

    name: ClassVar[str] = "coverage"
    runs: int
    points: tuple[CoveragePoint, ...]

    @property
    def title(self) -> str:
        """The finding."""
        off = [point for point in self.points if point.is_off]
        if not off:
            return f"The coverage of every quantile is right within the error of {count(self.runs, 'run')}"
        worst = max(off, key=lambda point: abs(point.share - point.level))
        return f"P{100 * worst.level:g} covered {percent(worst.share)} of {count(self.runs, 'run')}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        off = sum(point.is_off for point in self.points)
        return (
            f"Share of {count(self.runs, 'validation run')} at or below each of {count(len(self.points), 'quantile')}; "
            f"{off} of them lie outside the 95 % interval around what was measured."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn."""
        rows = (
            (percent(point.level), percent(point.share), f"{percent(point.low)} to {percent(point.high)}")
            for point in self.points[:TABLE_ROWS]
        )
        return Table(("promised", "covered", "95 % interval"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        figure = paper(self.title, height=320, x="promised share, %", y="share of runs covered, %")
        dashes = {"color": PEER, "width": 1.25, "dash": "dash"}
        figure.add_scatter(x=[0, 100], y=[0, 100], name="as promised", mode="lines", line=dashes, hoverinfo="skip")
        kinds = (("holds", BLUE, "circle", False), ("does not hold", VERMILION, "x", True))
        for words, colour, symbol, is_off in kinds:
            points = [point for point in self.points if point.is_off is is_off]
            if points:
                figure.add_scatter(**_marks(points, words), marker={"color": colour, "symbol": symbol, "size": 9})
        return figure.update_xaxes(range=[0, 102]).update_yaxes(range=[0, 102])


def coverage_plot(points: pd.DataFrame, *, runs: int) -> Coverage | None:
    """The figure of one model, or None without any level; columns level and share, of so many validation runs."""
    complete = points.dropna(subset=["level", "share"]).sort_values("level")
    if complete.empty or runs < 1:
        return None
    pairs = zip(complete["level"], complete["share"], strict=True)
    return Coverage(runs, tuple(_point(float(level), float(share), runs) for level, share in pairs))


def _point(level: float, share: float, runs: int) -> CoveragePoint:
    """The point with its interval. Source: Wilson 1927, the score interval of a binomial share."""
    centre = (share + Z**2 / (2 * runs)) / (1 + Z**2 / runs)
    half = Z * math.sqrt(share * (1 - share) / runs + Z**2 / (4 * runs**2)) / (1 + Z**2 / runs)
    return CoveragePoint(level, share, max(centre - half, 0.0), min(centre + half, 1.0))


def _marks(points: list[CoveragePoint], words: str) -> dict[str, object]:
    shares = [100 * point.share for point in points]
    above = [100 * point.high - share for point, share in zip(points, shares, strict=True)]
    below = [share - 100 * point.low for point, share in zip(points, shares, strict=True)]
    return {
        "x": [100 * point.level for point in points],
        "y": shares,
        "error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1},
        "mode": "markers",
        "name": words,
        "hovertemplate": "P%{x:.3~g} covered %{y:.3~g} % of runs<extra></extra>",
    }


@dataclass(frozen=True)
class Contender:
    """One method and its mean pinball loss of log seconds."""

    method: str
    loss: float
    is_model: bool


@dataclass(frozen=True)
class Leaderboard:
    """The model and the naive baselines on the same runs, best first."""

    name: ClassVar[str] = "leaderboard"
    contenders: tuple[Contender, ...]

    @property
    def title(self) -> str:
        """The finding."""
        model = next(contender for contender in self.contenders if contender.is_model)
        rivals = [contender for contender in self.contenders if not contender.is_model]
        if not rivals or rivals[0].loss <= 0:
            return f"{model.method} has no baseline to be compared with"
        skill = 1 - model.loss / rivals[0].loss
        than = f"than {rivals[0].method}, the best baseline"
        return f"{model.method} errs {percent(abs(skill))} {'less' if skill > 0 else 'more'} {than}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            f"Mean pinball loss of log seconds of {count(len(self.contenders), 'method')} on the same runs; "
            "lower is better, and 1 % is an error of about 1 % of the run time."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, best first."""
        rows = ((contender.method, percent(contender.loss)) for contender in self.contenders[:TABLE_ROWS])
        return Table(("method", "loss"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        shown = self.contenders[:TABLE_ROWS]
        figure = paper(self.title, height=min(120 + 28 * len(shown), 640), x="mean pinball loss, %", y="")
        figure.add_bar(
            x=[100 * contender.loss for contender in shown],
            y=[label(contender.method) for contender in shown],
            orientation="h",
            marker={
                "color": [BLUE if contender.is_model else PEER for contender in shown],
                "pattern": {"shape": ["" if contender.is_model else "/" for contender in shown]},
            },
            text=["the model" if contender.is_model else "baseline" for contender in shown],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.3~g} %<extra></extra>",
        )
        # The words beyond the longest bar need a quarter of the width of a telephone's screen.
        figure.update_xaxes(range=[0, max(1.4 * max(100 * contender.loss for contender in shown), 1e-6)])
        return figure.update_yaxes(autorange="reversed", showgrid=False)


def leaderboard(losses: pd.DataFrame) -> Leaderboard | None:
    """The figure, or None without a model; columns method, loss and is_model, which is true of one row."""
    complete = losses.dropna(subset=["loss"]).sort_values("loss", kind="stable")
    if int(complete["is_model"].sum()) != 1:
        return None
    rows = zip(complete["method"], complete["loss"], complete["is_model"], strict=True)
    return Leaderboard(tuple(Contender(str(method), float(loss), bool(is_model)) for method, loss, is_model in rows))
