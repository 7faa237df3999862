"""Exposed wait by rank and step: who waits, and who is waited for."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, TITLE_PIXELS, Table, paper, rounded
from crosswind.dashboards.palette import BLUE, HAIRLINE, LOW, MUTED, PEER, VERMILION
from crosswind.dashboards.wording import count, percent, seconds, unit_of
from crosswind.data.schema.prediction import Floats


@dataclass(frozen=True)
class RankRow:
    """One rank: its mean exposed wait, and the share of steps in which it waited least, so arrived last."""

    rank: int
    wait_seconds: float
    last_ratio: float


@dataclass(frozen=True)
class RankHeatMap:
    """Exposed wait in seconds by rank and step; with many steps, the longest wait of `steps_a_cell` neighbours.

    `waits[rank][column]` is None where nothing was recorded; `means[column]` is the mean of all ranks.
    With more than 128 ranks, those that wait least are
    shown: a rank that no other waits for is no suspect.
    """

    name: ClassVar[str] = "ranks"
    ranks: tuple[RankRow, ...]
    steps: tuple[int, ...]
    waits: tuple[tuple[float | None, ...], ...]
    means: tuple[float | None, ...]
    steps_a_cell: int
    rank_count: int

    @property
    def culprit(self) -> RankRow:
        """The rank that most often arrives last."""
        return max(self.ranks, key=lambda row: row.last_ratio)

    @property
    def title(self) -> str:
        """The finding."""
        return f"Rank {self.culprit.rank} arrives last in {percent(self.culprit.last_ratio)} of steps"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        longest = max(self.ranks, key=lambda row: row.wait_seconds)
        shown = "" if self.rank_count == len(self.ranks) else f", the {len(self.ranks)} that wait least"
        cell = "" if self.steps_a_cell == 1 else f" Each cell is the longest wait of {self.steps_a_cell} steps."
        return (
            f"Exposed wait of {count(self.rank_count, 'rank')}{shown}, by step; "
            f"rank {longest.rank} waits longest, {seconds(longest.wait_seconds)} a step.{cell} "
            "Above: the mean of all ranks; on the right: the mean of each rank, the one that arrives last in vermilion."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a rank."""
        ranks = sorted(self.ranks, key=lambda row: -row.last_ratio)[:TABLE_ROWS]
        rows = ((str(row.rank), percent(row.last_ratio), seconds(row.wait_seconds)) for row in ranks)
        return Table(("rank", "arrived last in", "mean exposed wait a step"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*(wait for row in self.waits for wait in row))
        names = [str(row.rank) for row in self.ranks]
        height = int(min(640, max(330, 240 + 28 * len(names))))
        figure = paper(self.title, height=height, x="step", y="rank")
        figure.add_heatmap(
            z=[rounded(row, scale, digits=3) for row in self.waits],
            x=self.steps,
            y=names,
            zmin=0,
            colorscale=[[0, LOW], [1, BLUE]],
            hoverongaps=False,
            colorbar=_colour_bar(f"exposed wait, {unit}"),
            hovertemplate=f"rank %{{y}}, step %{{x}}: waited %{{z:.3~g}} {unit}<extra></extra>",
        )
        figure.add_bar(
            orientation="h",
            y=names,
            x=rounded([row.wait_seconds for row in self.ranks], scale),
            xaxis="x2",
            marker={"color": [VERMILION if row == self.culprit else PEER for row in self.ranks], "line": {"width": 0}},
            hovertemplate=f"rank %{{y}} waits %{{x:.3~g}} {unit} a step<extra></extra>",
        )
        figure.add_scatter(
            x=self.steps,
            y=rounded(self.means, scale),
            yaxis="y2",
            mode="lines",
            line={"color": PEER, "width": 1.5, "shape": "hv"},
            hovertemplate=f"from step %{{x}}: all ranks wait %{{y:.3~g}} {unit} a step<extra></extra>",
        )
        return figure.update_layout(_layout(figure.layout, unit))


def _colour_bar(title: str) -> dict[str, object]:
    return {
        "title": {"text": title, "side": "top", "font": {"size": 13, "color": MUTED}},
        "tickfont": {"color": MUTED},
        "nticks": 5,
        "thickness": 10,
        "outlinewidth": 0,
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "len": 0.5,
        "y": 1.02,
        "yanchor": "bottom",
    }


def _layout(layout: Any, unit: str) -> dict[str, object]:
    axis = layout["xaxis"]
    font = axis["title"]["font"]
    margin = {"title": {"text": f"mean, {unit}", "font": font, "standoff": 8}, "rangemode": "tozero", "nticks": 2}
    # Plotly sets the title of a horizontal colour bar into the ticks, so an annotation is the title.
    step = {"text": "step", "x": 0.36, "y": 0, "xref": "paper", "yref": "paper", "yanchor": "top", "yshift": -22}
    return {
        "xaxis": {"domain": [0, 0.76], "showgrid": False, "anchor": "y", "title": {"text": ""}},
        "annotations": [{**step, "showarrow": False, "font": font}],
        "xaxis2": {**axis, **margin, "fixedrange": True, "domain": [0.8, 0.99], "anchor": "y"},
        "yaxis": {
            "fixedrange": True,
            "type": "category",
            "showgrid": False,
            "autorange": "reversed",
            "linecolor": HAIRLINE,
            "domain": [0, 0.74],
        },
        "yaxis2": {**axis, **margin, "fixedrange": True, "domain": [0.79, 1], "anchor": "x"},
        "showlegend": False,
        "bargap": 0.35,
        "margin": {"t": TITLE_PIXELS + 60},
    }


def rank_heat_map(
    ranks: pd.DataFrame, cells: pd.DataFrame, means: pd.DataFrame, *, first_step: int = 0, steps_a_cell: int = 1
) -> RankHeatMap | None:
    """The heat-map of a run, or None with fewer than two ranks, no step that all recorded, or no communication.

    Args:
        ranks: columns rank, comm_seconds (mean wait a step), last_ratio, a row a rank.
        cells: columns rank, cell, wait_seconds (longest of a cell); the ranks to show.
        means: columns cell, wait_seconds (mean of all ranks).
        first_step: of cell 0.
        steps_a_cell: steps of each cell.
    """
    waited = ranks.dropna(subset=["comm_seconds", "last_ratio"])
    if len(waited) < 2 or not (waited["comm_seconds"] > 0).any():
        return None
    columns = zip(*(waited[name] for name in ("rank", "comm_seconds", "last_ratio")), strict=True)
    rows = {int(rank): RankRow(int(rank), float(wait), float(last)) for rank, wait, last in columns}
    grid = cells.pivot_table(index="rank", columns="cell", values="wait_seconds", aggfunc="max")
    mean = means.set_index("cell")["wait_seconds"].reindex(grid.columns)
    return RankHeatMap(
        ranks=tuple(rows[int(rank)] for rank in grid.index),
        steps=tuple(first_step + int(cell) * steps_a_cell for cell in map(float, grid.columns)),
        waits=tuple(map(_cells, grid.to_numpy())),
        means=_cells(mean.to_numpy()),
        steps_a_cell=steps_a_cell,
        rank_count=len(rows),
    )


def _cells(row: Floats) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(cell) else float(cell) for cell in row)
