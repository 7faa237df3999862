"""The weights of a study's sources, and of its own trials, when its trials were suggested."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.palette import BLUE, GREEN, INK, ORANGE, PEER, PURPLE, VERMILION
from crosswind.dashboards.wording import count, percent
from crosswind.data.schema.trial import TrialRecord
from crosswind.models.tuner.search.tuner import OWN

HEIGHT, LEGEND_ROW = 260, 20  # pixels: of the plot, and of a line of its legend
DRAWN = 1500  # trials, the newest
NAME_MAX = 34  # letters in the legend
OWN_WORDS = "the study's own trials"
LINES = (
    (VERMILION, "dash", "triangle-up"),
    (BLUE, "dot", "circle"),
    (ORANGE, "dashdot", "square"),
    (PURPLE, "longdash", "diamond"),
    (GREEN, "longdashdot", "cross"),
    (PEER, "dash", "x"),
)


@dataclass(frozen=True)
class SourceWeights:
    """Weights by trial, its place in the study from 1 on; a source that was not used then has none.

    `names` are the sources with the largest weights, the largest first, and last the study's own trials.
    """

    name: ClassVar[str] = "weights"
    names: tuple[str, ...]
    weights: tuple[tuple[int, Mapping[str, float]], ...]

    @property
    def title(self) -> str:
        """The finding."""
        newest = self.weights[-1][1]
        own = newest.get(OWN, 0.0)
        first, weight = max(((name, newest.get(name, 0.0)) for name in self.names[:-1]), key=lambda pair: pair[1])
        if own >= weight:
            return f"The study's own trials count most: {percent(own)}"
        return f"{first} counts most: {percent(weight)}, the study's own trials {percent(own)}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        sources = count(len(self.names) - 1, "source")
        return (
            f"Weights of {sources} and of the study's own trials when each of {count(len(self.weights), 'trial')} was "
            "suggested; all weights of a trial sum to 100 %."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, the newest last."""
        rows = [
            (str(number), *(percent(weights.get(name)) for name in self.names))
            for number, weights in self.weights[-TABLE_ROWS:]
        ]
        return Table(("trial", *self.names[:-1], OWN_WORDS), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        height = HEIGHT + LEGEND_ROW * len(self.names)
        figure = paper(self.title, height=height, x="trial", y="weight, %")
        shown = self.weights[-DRAWN:]
        numbers = [number for number, _ in shown]
        marks = (*LINES[: len(self.names) - 1], (INK, "solid", "circle-open"))
        for name, (colour, dash, symbol) in zip(self.names, marks, strict=True):
            figure.add_scatter(
                x=numbers,
                y=[None if name not in weights else 100 * weights[name] for _, weights in shown],
                name=label(OWN_WORDS if name == OWN else _short(name)),
                mode="lines+markers" if len(shown) <= TABLE_ROWS else "lines",
                line={"color": colour, "dash": dash, "width": 2, "shape": "hv"},
                marker={"color": colour, "symbol": symbol, "size": 7},
                hovertemplate="%{fullData.name}<br>trial %{x}: %{y:.3~g} %<extra></extra>",
            )
        few = 1 if numbers[-1] <= len(LINES) * 2 else None
        figure.update_xaxes(rangemode="tozero", dtick=few).update_yaxes(range=[0, 104])
        return figure.update_layout(showlegend=True)


def source_weights(records: Sequence[TrialRecord]) -> SourceWeights | None:
    """The weights of the records, oldest first; None where none has any."""
    weighed = tuple((number, record.weights) for number, record in enumerate(records, 1) if record.weights)
    largest: dict[str, float] = {}
    for _, weights in weighed:
        for name in weights.keys() - {OWN}:
            largest[name] = max(largest.get(name, 0.0), weights[name])
    names = sorted(largest, key=lambda name: (-largest[name], name))[: len(LINES)]
    return SourceWeights((*names, OWN), weighed) if names else None


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX else f"{name[: NAME_MAX - 1]}…"
