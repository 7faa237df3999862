"""Quantiles of two runs' step times, and by how much they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, label, paper
from crosswind.dashboards.palette import BLUE, INK, PEER, translucent
from crosswind.dashboards.wording import count, percent, seconds, unit_of
from crosswind.data.schema.prediction import Floats

LEVELS = tuple(range(2, 100, 2))  # per cent, as lines
NAMED = (10, 25, 50, 75, 90, 95, 99)  # per cent, as points and rows
WRITTEN = (10, 50, 99)  # that are far enough apart for words beside their points


@dataclass(frozen=True)
class StepQuantiles:
    """Seconds of a step at each of LEVELS and of NAMED, over so many steps."""

    steps: int
    line: tuple[float, ...]
    named: tuple[float, ...]


@dataclass(frozen=True)
class QuantileShift:
    """Quantiles of the step times of A and of B, which is another run or the rest of A's cohort."""

    name: ClassVar[str] = "quantiles"
    a: StepQuantiles
    b: StepQuantiles
    b_name: str

    @property
    def differences(self) -> tuple[float, ...]:
        """Seconds at each of NAMED by which A's steps take longer."""
        return tuple(one - other for one, other in zip(self.a.named, self.b.named, strict=True))

    @property
    def title(self) -> str:
        """The finding."""
        middle, late = (self.differences[NAMED.index(level)] for level in (50, 99))
        return f"Steps of A: median {_signed(middle)} against {self.b_name}, P99 {_signed(late)}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        of = f"{count(self.a.steps, 'step')} of A and {self.b.steps} of {self.b_name}"
        return f"Step time of the slowest rank by quantile, over {of}; the first steps are left out."

    @property
    def table(self) -> Table:
        """The numbers drawn."""
        rows = zip(NAMED, self.a.named, self.b.named, self.differences, strict=True)
        return Table(
            ("quantile", "A", self.b_name, "difference", "of it"),
            tuple(
                (f"P{level}", seconds(one), seconds(other), _signed(more), percent(more / other) if other else "")
                for level, one, other, more in rows
            ),
        )

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*self.a.named, *self.b.named)
        figure = paper(self.title, height=340, x="quantile, % of steps that took less", y=f"step time, {unit}")
        for one, name, line in (
            (self.b, self.b_name, {"color": PEER, "width": 1.75, "dash": "dash"}),
            (self.a, "A", {"color": BLUE, "width": 2}),
        ):
            figure.add_scatter(
                x=LEVELS,
                y=[value / scale for value in one.line],
                name=label(name),
                mode="lines",
                line=line,
                fill="tonexty" if name == "A" else None,
                fillcolor=translucent(BLUE, 0.1),
                hovertemplate=f"P%{{x}}: %{{y:.3~g}} {unit}",
            )
        figure.add_scatter(
            x=NAMED,
            y=[value / scale for value in self.a.named],
            mode="markers+text",
            marker={"color": BLUE, "size": 7},
            text=[
                _signed(more) if level in WRITTEN else "" for level, more in zip(NAMED, self.differences, strict=True)
            ],
            textposition="top left",
            textfont={"size": 12, "color": INK},
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        )
        return figure.update_xaxes(range=[0, 100.5]).update_layout(hovermode="x")


def step_quantiles(durations: Sequence[float] | Floats) -> StepQuantiles | None:
    """The quantiles of step times, seconds; None without steps."""
    values = np.asarray(durations, np.float64)
    if not len(values):
        return None
    line, named = (np.quantile(values, np.array(levels) / 100) for levels in (LEVELS, NAMED))
    return StepQuantiles(len(values), tuple(line.tolist()), tuple(named.tolist()))


def _signed(value: float) -> str:
    return f"+{seconds(value)}" if value > 0 else seconds(value)
