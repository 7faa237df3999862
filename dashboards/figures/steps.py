"""The step times of one run against those of its cohort."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from crosswind.dashboards.downsample import MOST_POINTS, buckets, keep_extremes
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, paper
from crosswind.dashboards.palette import BLUE, PEER, translucent
from crosswind.dashboards.wording import count, percent, seconds, times, unit_of

TABLE_BUCKETS = 24


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

    @property
    def title(self) -> str:
        """The finding."""
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
        if self.band is None:
            return f"{run}. No other run of the cohort has steps to compare with."
        return f"{run}, over the band from P10 to P90 of {count(self.cohort_runs, 'other run')} of the cohort."

    def draw(self) -> go.Figure:
        """The plotly figure."""
        scale, unit = unit_of(*self.seconds, *(self.band.p90 if self.band else ()))
        figure = paper(self.title, height=320, x="step", y=f"step time, {unit}")
        if self.band is not None:
            _add_band(figure, self.band, scale)
        figure.add_scatter(
            x=self.steps,
            y=[value / scale for value in self.seconds],
            name="this run",
            mode="lines",
            line={"color": BLUE, "width": 1.75},
            hovertemplate=f"step %{{x}}: %{{y:.3~g}} {unit}<extra></extra>",
        )
        return figure.update_yaxes(rangemode="tozero").update_layout(hovermode="x")


def _add_band(figure: go.Figure, band: Band, scale: float) -> None:
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "legendgroup": "band"}
    figure.add_scatter(x=band.steps, y=[value / scale for value in band.p10], showlegend=False, **edge)
    figure.add_scatter(
        x=band.steps,
        y=[value / scale for value in band.p90],
        name="cohort P10 to P90",
        fill="tonexty",
        fillcolor=translucent(PEER, 0.28),
        **edge,
    )
    figure.add_scatter(
        x=band.steps,
        y=[value / scale for value in band.p50],
        name="cohort median",
        mode="lines",
        hoverinfo="skip",
        line={"color": PEER, "width": 1.25, "dash": "dash"},
    )


def step_ribbon(run: pd.DataFrame, cohort: pd.DataFrame, *, cohort_runs: int, most: int = MOST_POINTS) -> StepRibbon:
    """The ribbon of one run.

    Args:
        run: columns step, rank, duration_seconds.
        cohort: columns step, p10, p50, p90 in seconds over the cohort's other runs; empty when there are none.
        cohort_runs: number of other runs in the cohort frame.
        most: points of a line at most.
    """
    slowest = run.groupby("step")["duration_seconds"].max()
    values = slowest.to_numpy(np.float64)
    kept = keep_extremes(values, most)
    return StepRibbon(
        steps=tuple(int(step) for step in slowest.index[kept]),
        seconds=tuple(float(value) for value in values[kept]),
        step_count=len(slowest),
        median_seconds=float(np.median(values)) if len(values) else float("nan"),
        cohort_runs=cohort_runs,
        band=None if cohort.empty else _band(cohort, most),
        above_ratio=_above(slowest, cohort),
        table=_table(slowest, cohort),
    )


def _band(cohort: pd.DataFrame, most: int) -> Band:
    thin = cohort.groupby(buckets(len(cohort), most)).agg({"step": "min", "p10": "mean", "p50": "mean", "p90": "mean"})
    columns = {name: tuple(float(value) for value in thin[name]) for name in ("p10", "p50", "p90")}
    return Band(steps=tuple(int(step) for step in thin["step"]), **columns)


def _above(slowest: "pd.Series[float]", cohort: pd.DataFrame) -> float | None:
    limits = cohort.set_index("step")["p90"].reindex(slowest.index).dropna()
    return None if limits.empty else float((slowest[limits.index] > limits).mean())


def _table(slowest: "pd.Series[float]", cohort: pd.DataFrame) -> Table:
    bands = cohort.set_index("step").reindex(slowest.index)
    rows = []
    for _, part in slowest.groupby(buckets(len(slowest), min(TABLE_BUCKETS, TABLE_ROWS))):
        band = bands.loc[part.index, ["p10", "p50", "p90"]].mean()
        steps = str(part.index[0]) if len(part) == 1 else f"{part.index[0]} to {part.index[-1]}"
        times_ = (part.min(), part.median(), part.max(), band["p10"], band["p50"], band["p90"])
        rows.append((steps, *(seconds(float(value)) for value in times_)))
    return Table(("steps", "shortest", "median", "longest", "cohort P10", "cohort P50", "cohort P90"), tuple(rows))
