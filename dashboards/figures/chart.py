"""The parts of every figure: a finding, a sentence, a table with the same numbers, and a drawing."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar, Protocol

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.palette import BLUE, HAIRLINE, INK, LOW, MUTED, PAPER, VERMILION

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
TITLE_PIXELS = 24  # of a figure's top margin, for the title that a page takes out and gives as a heading
# Room for the labels of most figures: where they need more, plotly draws the figure a second time.
MARGIN_PIXELS = {"l": 64, "r": 26, "t": TITLE_PIXELS + 18, "b": 56}
DATES_PIXELS = 74  # below, for times over their days
LEFT_PIXELS = 72  # of figures over the same steps, one above the other
STILL = {"fixedrange": True, "automargin": False}  # an axis that a zoom leaves alone, so that others stay aligned
TABLE_ROWS = 60  # a table twin is for reading; the page's JSON and the API have all rows


@dataclass(frozen=True)
class Table:
    """The numbers of a figure as text: headers, and rows of as many cells."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Chart(Protocol):
    """A computed figure: what will be drawn, in numbers and in words."""

    name: ClassVar[str]

    @property
    def title(self) -> str:
        """The finding."""
        ...

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        ...

    @property
    def table(self) -> Table:
        """The numbers drawn, in at most some sixty rows."""
        ...

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        ...


def paper(title: str, *, height: int, x: str, y: str) -> Figure:
    """An empty figure in the house style; `x` and `y` are the axes' titles, with units."""
    axis = {
        "gridcolor": HAIRLINE,
        "linecolor": HAIRLINE,
        "tickcolor": HAIRLINE,
        "zeroline": False,
        "automargin": True,
        "fixedrange": False,
        "ticklabeloverflow": "allow",  # there is room for them; else plotly measures each label again
        "tickfont": {"color": MUTED},
    }
    return Figure(
        {
            "title": {"text": label(title), "font": {"size": 15, "color": INK}, "x": 0, "xref": "paper"},
            "height": height,
            "font": {"family": FONT, "size": 13, "color": INK},
            "paper_bgcolor": PAPER,
            "plot_bgcolor": PAPER,
            "margin": MARGIN_PIXELS,
            "xaxis": {**axis, "title": _axis_title(x)},
            "yaxis": {**axis, "title": _axis_title(y)},
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0, 0, 0, 0)"},
            "hoverlabel": {"bgcolor": PAPER, "bordercolor": MUTED, "font": {"color": INK, "size": 13}, "align": "left"},
            "hovermode": "closest",
        }
    )


def along_time(figure: Figure, **axis: Any) -> Figure:
    """Return a figure with an x axis of times, and more changes of that axis."""
    return figure.update_layout(margin={"b": DATES_PIXELS}).update_xaxes(type="date", **axis)


def add_heat(figure: Figure, *, unit: str, hover: str, **cells: Any) -> None:
    """Add cells (`z`, `x`, `y` of plotly.js) from light to blue, and their scale; rows go down, None is a hole."""
    figure.add_heatmap(
        **cells,
        colorscale=[[0, LOW], [1, BLUE]],
        hoverongaps=False,
        xgap=1,
        ygap=1,
        colorbar={
            "title": {"text": unit, "font": {"size": 13, "color": MUTED}},
            "tickfont": {"color": MUTED},
            "thickness": 10,
            "outlinewidth": 0,
        },
        hovertemplate=f"{hover}<extra></extra>",
    )
    figure.update_xaxes(showgrid=False).update_yaxes(type="category", autorange="reversed", showgrid=False)


def _axis_title(text: str) -> dict[str, object]:
    return {"text": text, "font": {"size": 13, "color": MUTED}, "standoff": 8}


def label(text: str) -> str:
    """A stranger's text for a place where plotly would read HTML."""
    return escape(text)


def rounded(values: Sequence[float | None], scale: float = 1.0, *, digits: int = 4) -> list[float | None]:
    """Return values over a scale with so many significant digits: more would not be seen, and be sent all the same."""
    return [None if value is None else float(f"{value / scale:.{digits}g}") for value in values]


def mark(place: float) -> dict[str, object]:
    """A line through a figure from top to bottom, at a place of its axis."""
    line = {"color": VERMILION, "width": 1.5, "dash": "dash"}
    return {"type": "line", "x0": place, "x1": place, "y0": 0, "y1": 1, "yref": "paper", "line": line}
