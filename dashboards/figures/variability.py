"""Differences between the runs of one cohort: over time, and as distributions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from crosswind.dashboards.downsample import keep_extremes
from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, along_time, label, paper
from crosswind.dashboards.figures.verdicts import LOOKS
from crosswind.dashboards.palette import BLUE, INK, PEER, translucent
from crosswind.dashboards.wording import count, moment, percent, seconds, times, unit_of, utc
from crosswind.data.schema.answers.explanations import Verdict

ECDF_POINTS = 100


@dataclass(frozen=True)
class CohortRun:
    """One run of the cohort: its start, its mean step time in seconds, and what its explanation says, if any."""

    run_id: str
    started_ns: int
    step_seconds: float
    verdict: Verdict | None


@dataclass(frozen=True)
class CohortOverTime:
    """The cohort's runs, oldest first, with the band from P10 to P90 of their mean step time, in seconds.

    Those of `selected` are marked.
    """

    name: ClassVar[str] = "cohort"
    runs: tuple[CohortRun, ...]
    p10: float
    p50: float
    p90: float
    selected: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The finding."""
        if self.selected:
            is_or_are = "is" if len(self.selected) == 1 else "are"
            return f"{len(self.selected)} of {count(len(self.runs), 'run')} {is_or_are} selected"
        spread = times(self.p90 / self.p10) if self.p10 > 0 else times(None)
        return f"The slowest tenth of runs needs {spread} the step time of the fastest tenth"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            f"Mean step time of {count(len(self.runs), 'run')} by start: median {seconds(self.p50)}, "
            f"P10 {seconds(self.p10)}, P90 {seconds(self.p90)}."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, newest first."""
        rows = (
            (
                utc(run.started_ns),
                run.run_id,
                seconds(run.step_seconds),
                times(run.step_seconds / self.p50),
                _word(run.verdict),
            )
            for run in self.runs[::-1][:TABLE_ROWS]
        )
        return Table(("started", "run", "mean step time", "of the median", "verdict"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*(run.step_seconds for run in self.runs))
        figure = paper(self.title, height=320, x="started, UTC", y=f"mean step time, {unit}")
        ends = [moment(run.started_ns) for run in (self.runs[0], self.runs[-1])]
        edge = {"x": ends, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        figure.add_scatter(y=[self.p10 / scale] * 2, showlegend=False, **edge)
        fill = {"fill": "tonexty", "fillcolor": translucent(PEER, 0.25)}
        figure.add_scatter(y=[self.p90 / scale] * 2, name="P10 to P90", **fill, **edge)
        dashes = {"color": PEER, "width": 1.25, "dash": "dash"}
        figure.add_scatter(y=[self.p50 / scale] * 2, name="median", **{**edge, "line": dashes})
        for verdict in (None, *LOOKS):
            runs = [run for run in self.runs if run.verdict is verdict]
            if runs:
                figure.add_scatter(**_dots(runs, verdict, scale))
        if chosen := [run for run in self.runs if run.run_id in self.selected]:
            figure.add_scatter(**_rings(chosen, scale))
        return along_time(figure, showgrid=False)


def cohort_over_time(
    runs: pd.DataFrame, verdicts: Mapping[str, Verdict], selected: Collection[str] = ()
) -> CohortOverTime | None:
    """The figure of one cohort, or None when no run has steps; columns run_id, started_ns, step_mean_seconds."""
    timed = runs.dropna(subset=["started_ns", "step_mean_seconds"]).sort_values("started_ns")
    if timed.empty:
        return None
    p10, p50, p90 = (
        float(value) for value in np.quantile(timed["step_mean_seconds"].to_numpy(np.float64), (0.1, 0.5, 0.9))
    )
    dots = tuple(
        CohortRun(str(run_id), int(started), float(mean), verdicts.get(str(run_id)))
        for run_id, started, mean in zip(timed["run_id"], timed["started_ns"], timed["step_mean_seconds"], strict=True)
    )
    return CohortOverTime(dots, p10, p50, p90, tuple(run.run_id for run in dots if run.run_id in selected))


def _rings(runs: list[CohortRun], scale: float) -> dict[str, object]:
    return {
        "x": [moment(run.started_ns) for run in runs],
        "y": [run.step_seconds / scale for run in runs],
        "mode": "markers",
        "name": "selected",
        "marker": {"color": INK, "symbol": "circle-open", "size": 15, "line": {"width": 1.5}},
        "hoverinfo": "skip",
    }


def _dots(runs: list[CohortRun], verdict: Verdict | None, scale: float) -> dict[str, object]:
    kept = [runs[place] for place in keep_extremes(np.array([run.step_seconds for run in runs]))]
    marker = {"color": BLUE, "symbol": "circle", "size": 9}
    if verdict is not None and verdict is not Verdict.NORMAL:
        marker.update(color=LOOKS[verdict].colour, symbol=LOOKS[verdict].symbol)
    return {
        "x": [moment(run.started_ns) for run in kept],
        "y": [run.step_seconds / scale for run in kept],
        "mode": "markers",
        "name": _word(verdict),
        "marker": marker,
        "customdata": [
            [run.run_id, f"{utc(run.started_ns)}<br>{_word(verdict)}: {seconds(run.step_seconds)} a step"]
            for run in kept
        ],
        "hovertemplate": "%{customdata[1]}<extra></extra>",
    }


def _word(verdict: Verdict | None) -> str:
    return "not judged yet" if verdict is None else LOOKS[verdict].word


@dataclass(frozen=True)
class Distribution:
    """The mean step times of one cohort's runs over their median, in order."""

    label: str
    is_selected: bool
    ratios: tuple[float, ...]

    def at_most(self, limit: float) -> float:
        """The share of runs with a ratio of at most the limit."""
        return float(np.searchsorted(self.ratios, limit, side="right") / len(self.ratios))


@dataclass(frozen=True)
class CohortDistributions:
    """One empirical distribution a cohort, each relative to its own median so that they can be compared."""

    name: ClassVar[str] = "ecdf"
    cohorts: tuple[Distribution, ...]

    @property
    def title(self) -> str:
        """The finding."""
        worst = min(self.cohorts, key=lambda cohort: cohort.at_most(1.1))
        slow = percent(1 - worst.at_most(1.1))
        return f"In {worst.label}, {slow} of runs take over 1.1x their cohort's median"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            f"Share of runs at or below a step time, for {count(len(self.cohorts), 'cohort')}; "
            "step times relative to the cohort's median. The steeper, the steadier."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, as quantiles."""
        rows = (
            (
                cohort.label,
                str(len(cohort.ratios)),
                *(times(float(value)) for value in np.quantile(cohort.ratios, (0.1, 0.5, 0.9, 1))),
            )
            for cohort in self.cohorts[:TABLE_ROWS]
        )
        return Table(("cohort", "runs", "P10", "P50", "P90", "slowest"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        figure = paper(self.title, height=320, x="mean step time / cohort median", y="share of runs, %")
        others = [other for other in self.cohorts if not other.is_selected]
        if others:  # one entry of the legend for all of them
            figure.add_scatter(
                x=[None], y=[None], name="other cohorts", mode="lines", line={"color": PEER, "width": 1.25}
            )
        for cohort in (*others, *(selected for selected in self.cohorts if selected.is_selected)):
            figure.add_scatter(**_stairs(cohort))
        return figure.update_yaxes(range=[0, 102], tickvals=[0, 25, 50, 75, 100])


def _stairs(cohort: Distribution) -> dict[str, object]:
    ratios = np.array(cohort.ratios)
    shares = np.arange(1, len(ratios) + 1) / len(ratios) * 100
    kept = np.unique(np.linspace(0, len(ratios) - 1, min(len(ratios), ECDF_POINTS)).astype(int))
    colour, width = (BLUE, 2.25) if cohort.is_selected else (PEER, 1.25)
    return {
        "x": [ratios[0], *ratios[kept]],
        "y": [0, *shares[kept]],
        "name": label(cohort.label),
        "mode": "lines",
        "line": {"shape": "hv", "color": colour, "width": width},
        "showlegend": cohort.is_selected,
        "hovertemplate": "%{fullData.name}<br>%{y:.0f} % of runs take at most %{x:.3~g}x<extra></extra>",
    }


def cohort_distributions(runs: pd.DataFrame, labels: Mapping[str, str], *, selected: str) -> CohortDistributions | None:
    """The distributions of the cohorts in `labels`, or None when none of them has steps.

    Args:
        runs: columns cohort and step_mean_seconds, a row a run.
        labels: cohort -> how it is called, in the order wanted.
        selected: the cohort to highlight.
    """
    timed = runs.dropna(subset=["step_mean_seconds"])
    groups = {key: group["step_mean_seconds"].to_numpy(np.float64) for key, group in timed.groupby("cohort")}
    drawn = tuple(
        Distribution(
            name, key == selected, tuple(float(value) for value in np.sort(groups[key] / np.median(groups[key])))
        )
        for key, name in labels.items()
        if key in groups
    )
    return CohortDistributions(drawn) if drawn else None
