"""Horizontal bars with a label each, as several figures of traces have them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import label, paper, rounded
from crosswind.dashboards.palette import INK
from crosswind.dashboards.wording import seconds, unit_of

NANOSECONDS = 1e9
ROW_PIXELS, AROUND_PIXELS, MOST_PIXELS = 34, 96, 640
NAME_LENGTH = 30  # characters of a name beside its bar; hover and table have more
TABLE_LENGTH = 160  # of a kernel's name in a table: templates have thousands of characters
QUALIFIED = re.compile(r"(?:void )?(?:(?:\w+|\(anonymous namespace\))::)*(?=\w+[<(])")  # before a function's own name


@dataclass(frozen=True)
class Row:
    """One bar: its name, a second line below it, its time, its colour, and the words on hover."""

    name: str
    note: str
    ns: float
    colour: str
    said: str


def bars(title: str, rows: Sequence[Row], *, axis: str) -> Figure:
    """Return a figure with a bar a row, from the top down; `axis` says which time it is."""
    scale, unit = unit_of(*(row.ns / NANOSECONDS for row in rows))
    height = min(MOST_PIXELS, AROUND_PIXELS + ROW_PIXELS * len(rows))
    figure = paper(title, height=height, x=f"{axis}, {unit}", y="")
    figure.add_bar(
        orientation="h",
        y=list(range(len(rows))),
        x=rounded([row.ns / NANOSECONDS for row in rows], scale),
        marker={"color": [row.colour for row in rows], "line": {"width": 0}},
        hovertext=[label(row.said) for row in rows],
        hoverinfo="text",
        width=0.5,
    )
    ticks = [
        f"{label(short(own_name(row.name)))}<br><span style='font-size:12px'>{label(row.note)}</span>" for row in rows
    ]
    figure.update_xaxes(nticks=5, tickangle=0)
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=ticks,
        range=[len(rows) - 0.4, -0.6],
        showgrid=False,
        tickfont={"color": INK},
        fixedrange=True,
    )
    return figure.update_layout(showlegend=False)


def own_name(name: str) -> str:
    """Return the name of a C++ function without its result and namespaces; other names as they are."""
    return QUALIFIED.sub("", name, count=1) if QUALIFIED.match(name) else name


def short(name: str, length: int = NAME_LENGTH) -> str:
    """Return a name, of a long one its begin."""
    return name if len(name) <= length else f"{name[: length - 1]}\u2026"


def time(ns: float | None) -> str:
    """Return a time of nanoseconds in words: `1.23 ms`."""
    return seconds(None if ns is None else ns / NANOSECONDS)
