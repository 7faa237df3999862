"""The nodes of a run while it ran, in strips under its steps: one node against the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import LEFT_PIXELS, STILL, TITLE_PIXELS, Table, label, mark, paper, rounded
from crosswind.dashboards.palette import BLUE, HAIRLINE, MUTED, PEER, translucent
from crosswind.dashboards.wording import count, quantity

STRIP_PIXELS, GAP_PIXELS, AROUND_PIXELS = 72, 24, TITLE_PIXELS + 100
HEADING = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "showarrow": False}
SHOWN_RATIO = 0.02  # a difference that is less is not worth a title

Values = tuple[float | None, ...]


@dataclass(frozen=True)
class Strip:
    """One quantity of nodes at places on the axis; None where nothing was sampled.

    `own` is of the node in blue, the others' 10th, 50th and 90th percentile are of the rest; either may be empty.
    """

    name: str
    unit: str
    places: tuple[float, ...]
    own: Values
    p10: Values
    p50: Values
    p90: Values

    @property
    def own_mean(self) -> float | None:
        """The mean of the node in blue."""
        return _mean(self.own)

    @property
    def others_mean(self) -> float | None:
        """The mean of the others' median."""
        return _mean(self.p50)

    @property
    def ratio(self) -> float | None:
        """The difference of the node from the others, as a share of theirs; None without both."""
        own, others = self.own_mean, self.others_mean
        return None if own is None or not others else own / others - 1


def _mean(values: Values) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


@dataclass(frozen=True)
class NodeStrips:
    """Strips of one node (None: of all alike) and of `others` further ones; `missing` names what was not sampled."""

    name: ClassVar[str] = "strips"
    node: str | None
    others: int
    axis: str
    span: tuple[float, float]
    strips: tuple[Strip, ...]
    missing: tuple[str, ...]
    mark: float | None = None

    @property
    def title(self) -> str:
        """The finding."""
        differing = [strip for strip in self.strips if abs(strip.ratio or 0.0) >= SHOWN_RATIO]
        if self.node is None or not self.others:
            return f"{self._nodes} while it ran: {', '.join(strip.name for strip in self.strips)}"
        if not differing:
            return f"Node {self.node} did as the other nodes did"
        most = max(differing, key=lambda strip: abs(strip.ratio or 0.0))
        own, others = (quantity(value, most.unit) for value in (most.own_mean, most.others_mean))
        return f"Node {self.node} differs most in {most.name}: {own}, the other nodes {others}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        shown = f"Node {self.node} in blue" if self.node is not None else "All nodes in grey"
        if self.node is not None and self.others:
            shown += f", median and P10 to P90 of {count(self.others, 'other node')} in grey"
        missing = f" Not sampled: {', '.join(self.missing)}." if self.missing else ""
        place = "at the step of its time, on the axis of the steps" if self.axis == "step" else f"at its {self.axis}"
        return f"{shown}; each sample is {place}.{missing}"

    @property
    def _nodes(self) -> str:
        return f"Node {self.node}" if self.node is not None else count(self.others, "node").capitalize()

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a strip."""
        return Table(
            ("", "mean of the node", "mean of the others' median", "others' lowest P10", "others' highest P90"),
            tuple(_row(strip) for strip in self.strips),
        )

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        rows = len(self.strips)
        height = AROUND_PIXELS + rows * STRIP_PIXELS
        figure = paper(self.title, height=height, x=self.axis, y="")
        axis = {**figure.layout["yaxis"], "title": None, "nticks": 3, "rangemode": "tozero"}
        tops = [1 - number * STRIP_PIXELS / (rows * STRIP_PIXELS - GAP_PIXELS) for number in range(rows)]
        part = (STRIP_PIXELS - GAP_PIXELS) / (rows * STRIP_PIXELS - GAP_PIXELS)
        names = ["y", *(f"y{number}" for number in range(2, rows + 1))]
        placed = zip(self.strips, names, strict=True)
        figure.add_traces([line for strip, name in placed for line in self._lines(strip, name)])
        axes = {
            f"yaxis{name[1:]}": {**axis, **STILL, "domain": [max(0.0, top - part), top]}
            for name, top in zip(names, tops, strict=True)
        }
        headings = [_heading(strip, top) for strip, top in zip(self.strips, tops, strict=True)]
        return figure.update_layout(
            **axes,
            xaxis={"range": list(self.span), "anchor": names[-1], "gridcolor": HAIRLINE},
            annotations=headings,
            shapes=[] if self.mark is None else [mark(self.mark)],
            hovermode="x",
            margin={"l": LEFT_PIXELS, "t": TITLE_PIXELS + 52},
            legend={"y": 1, "yref": "container", "yanchor": "top"},
        )

    def _lines(self, strip: Strip, axis: str) -> list[dict[str, object]]:
        """Return the traces of a strip: band and median of the others, and the node in blue."""
        scale, unit = _scale(strip)
        line = {"type": "scatter", "x": strip.places, "yaxis": axis, "mode": "lines", "hoverinfo": "skip"}
        is_first = strip is self.strips[0]
        traces: list[dict[str, object]] = []
        if any(value is not None for value in strip.p50):
            band = {**line, "line": {"width": 0}, "legendgroup": "others"}
            filled = {"fill": "tonexty", "fillcolor": translucent(PEER, 0.28)}
            dashed = {"color": PEER, "width": 1.25, "dash": "dash"}
            of = "other nodes" if self.node is not None else "nodes"
            traces += [
                {**band, "y": rounded(strip.p10, scale), "showlegend": False},
                {**band, **filled, "y": rounded(strip.p90, scale), "name": f"{of}, P10 to P90", "showlegend": is_first},
                {**line, "line": dashed, "y": rounded(strip.p50, scale), "name": "median", "showlegend": is_first},
            ]
        if any(value is not None for value in strip.own):
            hover = {"hoverinfo": None, "hovertemplate": f"%{{x}}: %{{y:.3~g}} {unit}<extra></extra>"}
            blue = {"line": {"color": BLUE, "width": 1.5}, "name": label(f"node {self.node}"), "showlegend": is_first}
            traces.append({**line, **hover, **blue, "y": rounded(strip.own, scale)})
        return traces


def _heading(strip: Strip, top: float) -> dict[str, object]:
    unit = _scale(strip)[1]
    text = label(f"{strip.name}, {unit}" if unit else strip.name)
    return {"text": text, "x": 0, "y": top, "font": {"color": MUTED}, **HEADING}


def _scale(strip: Strip) -> tuple[float, str]:
    """Return by what to divide values, and the unit that they are then in."""
    largest = max((abs(value) for value in (*strip.own, *strip.p90) if value is not None), default=0.0)
    if strip.unit == "ratio":
        return 0.01, "%"
    _, _, unit = quantity(largest, strip.unit).partition(" ")
    prefix = unit.removesuffix(strip.unit.replace("bytes", "B"))
    return {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3}.get(prefix, 1.0), unit


def _row(strip: Strip) -> tuple[str, ...]:
    ends = (_least(strip.p10), _most(strip.p90))
    values = (strip.own_mean, strip.others_mean, *ends)
    return (strip.name, *(_shown(value, strip.unit) for value in values))


def _shown(value: float | None, unit: str) -> str:
    return quantity(None if value is None else value * 100, "%") if unit == "ratio" else quantity(value, unit)


def _least(values: Sequence[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
