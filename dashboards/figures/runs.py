"""The runs of a list over time, each against what was expected of it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, along_time, label, paper
from crosswind.dashboards.figures.verdicts import LOOKS
from crosswind.dashboards.palette import MUTED
from crosswind.dashboards.wording import count, moment, number, times, utc
from crosswind.data.schema.answers.explanations import Verdict


@dataclass(frozen=True)
class RunPoint:
    """One explained run: when it started, and measured / expected time with its interval."""

    run_id: str
    workload: str
    started_ns: int
    verdict: Verdict
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class RunsOverTime:
    """Explained runs, oldest first; `left_out` runs have no expected time to be compared with."""

    name: ClassVar[str] = "runs"
    points: tuple[RunPoint, ...]
    left_out: int

    @property
    def _slow(self) -> list[RunPoint]:
        return [point for point in self.points if point.verdict is Verdict.SLOW]

    @property
    def title(self) -> str:
        """The finding."""
        perhaps = sum(point.verdict is Verdict.PERHAPS_SLOW for point in self.points)
        if not self._slow and perhaps:
            return f"{count(perhaps, 'run')} of {len(self.points)} perhaps slow, none surely"
        if not self._slow:
            return f"{count(len(self.points), 'run')} took about as long as expected"
        ratios = [point.ratio for point in self._slow]
        spread = times(max(ratios)) if len(ratios) == 1 else f"{number(min(ratios))} to {times(max(ratios))}"
        return f"{count(len(ratios), 'slow run')} took {spread} the expected time"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        left = f" {count(self.left_out, 'run')} without enough evidence left out." if self.left_out else ""
        return f"Measured over expected time by start; whiskers are 90 % intervals, 1 is as expected.{left}"

    @property
    def table(self) -> Table:
        """The numbers drawn, newest first."""
        rows = (
            (utc(point.started_ns), point.workload, LOOKS[point.verdict].word, _range(point))
            for point in self.points[::-1][:TABLE_ROWS]
        )
        return Table(("started", "workload", "verdict", "measured / expected [90 % interval]"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        figure = paper(self.title, height=250, x="started, UTC", y="measured / expected time")
        for verdict, look in LOOKS.items():
            points = [point for point in self.points if point.verdict is verdict]
            if not points:
                continue
            figure.add_scatter(
                x=[moment(point.started_ns) for point in points],
                y=[point.ratio for point in points],
                name=look.word,
                mode="markers",
                customdata=[[point.run_id, _hover(point)] for point in points],
                marker={"color": look.colour, "symbol": look.symbol, "size": 10},
                error_y={
                    "type": "data",
                    "array": [point.high - point.ratio for point in points],
                    "arrayminus": [point.ratio - point.low for point in points],
                    "thickness": 1,
                    "width": 0,
                },
                hovertemplate="%{customdata[1]}<extra></extra>",
            )
        figure.add_hline(1, line={"color": MUTED, "width": 1, "dash": "dash"}, layer="below")
        return along_time(figure, showgrid=False)


def runs_over_time(points: pd.DataFrame) -> RunsOverTime | None:
    """The figure of a list of runs, or None when none can be compared or placed in time.

    Args:
        points: columns run_id, workload, started_ns, verdict, measured_seconds, expected_seconds, excess_low,
            excess_high (seconds); null where an explanation abstains.
    """
    comparable = points.dropna(subset=["started_ns", "measured_seconds", "expected_seconds"])
    comparable = comparable[comparable["expected_seconds"] > 0].sort_values("started_ns")
    if comparable.empty:
        return None
    return RunsOverTime(tuple(_point(row) for row in comparable.to_dict("records")), len(points) - len(comparable))


def _point(row: Mapping[Hashable, Any]) -> RunPoint:
    expected = float(row["expected_seconds"])
    return RunPoint(
        run_id=str(row["run_id"]),
        workload=str(row["workload"]),
        started_ns=int(row["started_ns"]),
        verdict=Verdict(row["verdict"]),
        ratio=float(row["measured_seconds"]) / expected,
        low=1 + float(row["excess_low"]) / expected,
        high=1 + float(row["excess_high"]) / expected,
    )


def _range(point: RunPoint) -> str:
    return f"{times(point.ratio)} [{number(point.low)} to {number(point.high)}]"


def _hover(point: RunPoint) -> str:
    return f"{label(point.workload)}, {utc(point.started_ns)}<br>{LOOKS[point.verdict].word}: {_range(point)}"
