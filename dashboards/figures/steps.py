"""The step times of one run against those of its cohort."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.dashboards.downsample import buckets, keep_extremes
from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import LEFT_PIXELS, STILL, TABLE_ROWS, Table, mark, paper, rounded
from crosswind.dashboards.palette import BLUE, INK, PAPER, PEER, translucent
from crosswind.dashboards.wording import count, percent, seconds, times, unit_of
from crosswind.data.schema.answers.explanations import StepChange
from crosswind.data.schema.prediction import Floats

TABLE_BUCKETS = 24
MOST_DRAWN = 1000  # points of the line; a page is to have 30 KB


@dataclass(frozen=True)
class Band:
    """The cohort's step time by step number, in seconds: 10th, 50th and 90th percentile."""

    steps: tuple[int, ...]
    p10: tuple[float, ...]
    p50: tuple[float, ...]
    p90: tuple[float, ...]


@dataclass(frozen=True)
class StepRibbon:
    """A run's step times (those of its slowest rank, down-sampled) over the band of its cohort's other runs.

    `above_ratio` is the share of the run's steps that lie above the cohort's P90 for that step.
    """

    name: ClassVar[str] = "steps"
    steps: tuple[int, ...]
    seconds: tuple[float, ...]
    step_count: int
    median_seconds: float
    cohort_runs: int
    band: Band | None
    above_ratio: float | None
    table: Table
    change: StepChange | None = None

    @property
    def title(self) -> str:
        """The finding."""
        if self.change is not None:
            return f"{self._since}: {self._change}"
        median = seconds(self.median_seconds)
        if self.band is None or self.above_ratio is None:
            return f"Half of the steps took more than {median}"
        usual = float(np.median(self.band.p50))
        ratio = self.median_seconds / usual if usual > 0 else None
        where = f"{percent(self.above_ratio)} of steps above the cohort's P90"
        return f"Median step {median}, {times(ratio)} the cohort's {seconds(usual)}; {where}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        run = f"Step time of the slowest rank over {count(self.step_count, 'step')}"
        if self.change is not None:
            run = f"{run}; {self._since.lower()}: {self._change}"
        if self.band is None:
            return f"{run}. No other run of the cohort has steps to compare with."
        return f"{run}, over the band from P10 to P90 of {count(self.cohort_runs, 'other run')} of the cohort."

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*self.seconds, *(self.band.p90 if self.band else ()))
        figure = paper(self.title, height=320, x="step", y=f"step time, {unit}")
        if self.band is not None:
            _add_band(figure, self.band, scale)
        figure.add_scatter(
            x=self.steps,
            y=rounded(self.seconds, scale),
            name="this run",
            mode="lines",
            line={"color": BLUE, "width": 1.75},
            hovertemplate=f"step %{{x}}: %{{y:.3~g}} {unit}<extra></extra>",
        )
        if self.change is not None:
            at = self.change.first_step
            said = {"text": self._since.lower(), "x": at, "y": 1, "yref": "paper", "xanchor": "left", "yanchor": "top"}
            note = {**said, "showarrow": False, "font": {"color": INK}, "bgcolor": PAPER, "xshift": 4}
            figure.update_layout(shapes=[mark(at)], annotations=[note])
        figure.update_xaxes(range=[self.steps[0], self.steps[-1] + 1])
        figure.update_yaxes(rangemode="tozero", **STILL)
        return figure.update_layout(hovermode="x", margin={"l": LEFT_PIXELS})

    @property
    def _since(self) -> str:
        """From where on the run's own steps took longer."""
        change = self.change
        if change is None:
            return ""
        return f"Slow since step {change.first_step}" + ("" if change.last_step is None else f", to {change.last_step}")

    @property
    def _change(self) -> str:
        change = self.change
        if change is None:
            return ""
        return f"{seconds(change.since_seconds)} a step, {seconds(change.before_seconds)} before"


def _add_band(figure: Figure, band: Band, scale: float) -> None:
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "legendgroup": "band"}
    figure.add_scatter(x=band.steps, y=rounded(band.p10, scale), showlegend=False, **edge)
    figure.add_scatter(
        x=band.steps,
        y=rounded(band.p90, scale),
        name="cohort P10 to P90",
        fill="tonexty",
        fillcolor=translucent(PEER, 0.28),
        **edge,
    )
    figure.add_scatter(
        x=band.steps,
        y=rounded(band.p50, scale),
        name="cohort median",
        mode="lines",
        hoverinfo="skip",
        line={"color": PEER, "width": 1.25, "dash": "dash"},
    )


def step_ribbon(
    slowest: pd.DataFrame,
    cohort: pd.DataFrame,
    *,
    cohort_runs: int,
    change: StepChange | None = None,
    most: int = MOST_DRAWN,
) -> StepRibbon:
    """The ribbon of one run.

    Args:
        slowest: columns step, and seconds of the slowest rank, a row a step.
        cohort: columns step, p10, p50, p90 in seconds over the cohort's other runs; empty when there are none.
        cohort_runs: number of other runs in the cohort frame.
        change: from where on the run's own steps took longer.
        most: points of a line at most.
    """
    times_ = slowest.set_index("step")["seconds"]
    values = times_.to_numpy(np.float64)
    kept = keep_extremes(values, most)
    return StepRibbon(
        steps=tuple(int(step) for step in times_.index[kept]),
        seconds=tuple(float(value) for value in values[kept]),
        step_count=len(times_),
        median_seconds=float(np.median(values)) if len(values) else float("nan"),
        cohort_runs=cohort_runs,
        band=None if cohort.empty else _band(cohort, most // 4),
        above_ratio=_above(times_, cohort),
        table=_table(times_, cohort),
        change=change,
    )


def _band(cohort: pd.DataFrame, most: int) -> Band:
    thin = cohort.groupby(buckets(len(cohort), most)).agg({"step": "min", "p10": "mean", "p50": "mean", "p90": "mean"})
    columns = {name: tuple(float(value) for value in thin[name]) for name in ("p10", "p50", "p90")}
    return Band(steps=tuple(int(step) for step in thin["step"]), **columns)


def _above(slowest: "pd.Series[float]", cohort: pd.DataFrame) -> float | None:
    limits = cohort.set_index("step")["p90"].reindex(slowest.index).dropna()
    return None if limits.empty else float((slowest[limits.index] > limits).mean())


def _table(slowest: "pd.Series[float]", cohort: pd.DataFrame) -> Table:
    values, steps = np.asarray(slowest, np.float64), slowest.index.to_numpy()
    bands = np.asarray(cohort.set_index("step")[["p10", "p50", "p90"]].reindex(steps), np.float64)
    place = buckets(len(values), min(TABLE_BUCKETS, TABLE_ROWS))
    parts = np.split(np.arange(len(values)), np.flatnonzero(np.diff(place)) + 1)
    rows = tuple(_row(steps[part], values[part], bands[part]) for part in parts if len(part))
    return Table(("steps", "shortest", "median", "longest", "cohort P10", "cohort P50", "cohort P90"), rows)


def _row(steps: NDArray[np.int64], values: Floats, bands: Floats) -> tuple[str, ...]:
    name = str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    there = bands[~np.isnan(bands).any(axis=1)]
    band = there.mean(axis=0) if len(there) else (None, None, None)
    return (name, *map(seconds, (*np.quantile(values, (0, 0.5, 1)), *band)))
