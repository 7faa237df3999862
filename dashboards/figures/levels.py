"""A workload's runs over weeks, and the levels that their time kept."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from crosswind.dashboards.downsample import keep_extremes
from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, along_time, label, paper
from crosswind.dashboards.palette import BLUE, PEER, VERMILION
from crosswind.dashboards.wording import count, moment, times, utc
from crosswind.models.stragglers.history import History, Level


@dataclass(frozen=True)
class Levels:
    """Runs and the levels that they kept, oldest first."""

    name: ClassVar[str] = "levels"
    history: History

    @property
    def title(self) -> str:
        """The finding."""
        levels = self.history.levels
        if len(levels) == 1:
            return f"{self.history.workload} kept one level over {count(levels[0].runs, 'run')}"
        before, now = levels[-2:]
        word = "slower" if now.ratio > before.ratio else "faster"
        return f"{self.history.workload} became {word} on {utc(now.since_ns)[:10]}, {times(now.ratio / before.ratio)}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            f"Time of {count(len(self.history.runs), 'run')} on {self.history.system} over the usual time of their "
            f"cohort, by start; the thick lines are {count(len(self.history.levels), 'level')}, the medians of runs "
            "between lasting changes."
        )

    @property
    def table(self) -> Table:
        """The levels, newest first."""
        rows = (
            (utc(level.since_ns), utc(level.until_ns), str(level.runs), times(level.ratio))
            for level in self.history.levels[::-1][:TABLE_ROWS]
        )
        return Table(("first run", "last run", "runs", "time / usual"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        figure = paper(self.title, height=320, x="started, UTC", y="time / usual of the cohort")
        figure.add_scatter(**self._dots())
        x: list[object] = []
        y: list[float | None] = []
        for level in self.history.levels:
            x += [moment(level.since_ns), moment(level.until_ns), None]
            y += [level.ratio, level.ratio, None]
        figure.add_scatter(x=x, y=y, name="level", mode="lines", line={"color": BLUE, "width": 3}, hoverinfo="skip")
        for before, after in pairwise(self.history.levels):
            figure.add_vline(moment(after.since_ns), line={"color": _colour(before, after), "width": 1, "dash": "dash"})
        return along_time(figure, showgrid=False)

    def _dots(self) -> dict[str, object]:
        runs = self.history.runs
        kept = [runs[place] for place in keep_extremes(np.array([run.ratio for run in runs]))]
        workload = label(self.history.workload)
        return {
            "x": [moment(run.started_ns) for run in kept],
            "y": [run.ratio for run in kept],
            "name": "run",
            "mode": "markers",
            "marker": {"color": PEER, "symbol": "circle", "size": 5},
            "customdata": [[run.run_id, f"{workload}, {utc(run.started_ns)}<br>{times(run.ratio)}"] for run in kept],
            "hovertemplate": "%{customdata[1]}<extra></extra>",
        }


def levels_plot(history: History) -> Levels | None:
    """The figure, or None where there are too few runs."""
    return Levels(history) if history.levels else None


def _colour(before: Level, after: Level) -> str:
    return VERMILION if after.ratio > before.ratio else BLUE
