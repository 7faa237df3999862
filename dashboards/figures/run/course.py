"""The course of a run: start-up, warm-up, steps and end, as parts of one bar."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, paper
from crosswind.dashboards.palette import BLUE, GREEN, ORANGE, PEER, PURPLE, hatched
from crosswind.dashboards.wording import axis_unit, percent, seconds
from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.features import WARM_UP_STEPS

LOOKS = {
    "launch": (PURPLE, "."),
    "start-up": (ORANGE, "\\"),
    "warm-up": (PEER, "/"),
    "steps": (BLUE, ""),
    "end": (GREEN, "x"),
}
MEANINGS = {
    "launch": "until the last rank started",
    "start-up": "until the first step",
    "warm-up": f"the first {WARM_UP_STEPS} steps",
    "steps": "all further steps",
    "end": "from the last step until the run ended",
}


@dataclass(frozen=True)
class Part:
    """A part of the run's time."""

    name: str
    seconds: float


@dataclass(frozen=True)
class RunCourse:
    """The parts of a run's time, in order; those that cannot be known are left out."""

    name: ClassVar[str] = "course"
    parts: tuple[Part, ...]

    @property
    def total_seconds(self) -> float:
        """The time of all parts."""
        return sum(part.seconds for part in self.parts)

    @property
    def before_seconds(self) -> float:
        """The time before the first step."""
        return sum(part.seconds for part in self.parts if part.name in ("launch", "start-up"))

    @property
    def title(self) -> str:
        """The finding."""
        share = percent(self.before_seconds / self.total_seconds)
        return f"{seconds(self.before_seconds)} before the first step, {share} of {seconds(self.total_seconds)}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return f"{'; '.join(f'{part.name} {seconds(part.seconds)}' for part in self.parts)}."

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a part."""
        rows = (
            (part.name, seconds(part.seconds), percent(part.seconds / self.total_seconds), MEANINGS[part.name])
            for part in self.parts
        )
        return Table(("part", "time", "share", ""), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = axis_unit(self.total_seconds)
        figure = paper(self.title, height=190, x=f"time since the run's start, {unit}", y="")
        for part in self.parts:
            colour, shape = LOOKS[part.name]
            figure.add_bar(
                orientation="h",
                y=[""],
                x=[part.seconds / scale],
                name=part.name,
                marker={"color": colour, "pattern": hatched(shape), "line": {"width": 0}},
                hovertemplate=f"{part.name}, {MEANINGS[part.name]}: {seconds(part.seconds)}<extra></extra>",
            )
        figure.update_yaxes(showticklabels=False, showgrid=False)
        return figure.update_layout(barmode="stack", bargap=0.3, legend={"traceorder": "normal"})


def run_course(run: Run, ranks: tuple[Rank, ...], steps: pd.DataFrame) -> RunCourse | None:
    """The course of a run that has a start and steps; columns step, began_ns, seconds, a row a step."""
    if run.started_ns is None or steps.empty:
        return None
    began = steps["began_ns"]
    compared = began[steps["step"] >= WARM_UP_STEPS]
    last_ns = int(began.iloc[-1] + steps["seconds"].iloc[-1] * 1e9)
    first_ns = int(began.iloc[0])
    moments = [
        ("launch", min(max((rank.started_ns for rank in ranks), default=run.started_ns), first_ns)),
        ("start-up", first_ns),
        ("warm-up", last_ns if compared.empty else int(compared.iloc[0])),
        ("steps", last_ns),
        ("end", run.ended_ns),
    ]
    return _course(run.started_ns, moments)


def _course(started_ns: int, moments: list[tuple[str, int | None]]) -> RunCourse | None:
    parts, begin_ns = [], started_ns
    for name, end_ns in moments:
        if end_ns is not None and end_ns > begin_ns:
            parts.append(Part(name, (end_ns - begin_ns) * 1e-9))
            begin_ns = end_ns
    return RunCourse(tuple(parts)) if parts else None
