"""The dose of a neighbour: whether more of it goes with more delay."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, label, paper
from crosswind.dashboards.palette import BLUE, MUTED, ORANGE, PEER, PURPLE, VERMILION
from crosswind.dashboards.wording import count, times

DRAWN = 5  # neighbours, each with a colour, a symbol and a dash of its own
THIRDS = ("least", "middle", "most")
LINES = (
    (VERMILION, "triangle-up", "solid"),
    (BLUE, "circle", "dash"),
    (ORANGE, "square", "dot"),
    (PURPLE, "diamond", "dashdot"),
    (PEER, "x", "longdash"),
)


@dataclass(frozen=True)
class DoseLine:
    """Time of the exposed runs with least, middle and most of a neighbour, over that of runs without it."""

    name: str
    ratios: tuple[float, float, float]
    is_rising: bool


@dataclass(frozen=True)
class Doses:
    """The neighbours with the surest effects."""

    name: ClassVar[str] = "dose"
    lines: tuple[DoseLine, ...]

    @property
    def title(self) -> str:
        """The finding."""
        rising = [line for line in self.lines if line.is_rising]
        if not rising:
            return "More of them is not shown to go with more delay"
        others = f" and of {len(rising) - 1} more" if len(rising) > 1 else ""
        return f"More of {rising[0].name}{others} goes with more delay"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            f"Time relative to runs without the neighbour, over thirds of the exposed runs by how much of it they had; "
            f"{count(len(self.lines), 'neighbour')} with nine such runs or more."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn."""
        rows = (
            (line.name, *map(times, line.ratios), "rising" if line.is_rising else "not shown to rise")
            for line in self.lines
        )
        return Table(("neighbour", *THIRDS, "trend"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        figure = paper(self.title, height=300, x="exposure of the runs to it", y="times as long")
        for line, (colour, symbol, dash) in zip(self.lines, LINES, strict=False):
            figure.add_scatter(
                x=list(THIRDS),
                y=list(line.ratios),
                name=label(line.name),
                mode="lines+markers",
                line={"color": colour, "dash": dash, "width": 2},
                marker={"color": colour, "symbol": symbol, "size": 10},
                hovertemplate="%{fullData.name}<br>%{x}: %{y:.3~g}x<extra></extra>",
            )
        figure.add_hline(1, line={"color": MUTED, "width": 1, "dash": "dash"}, layer="below")
        return figure.update_layout(showlegend=True).update_xaxes(showgrid=False)


def dose_plot(lines: Sequence[DoseLine]) -> Doses | None:
    """The first neighbours, or None without any."""
    return Doses(tuple(lines[:DRAWN])) if lines else None
