"""Exposed wait by rank and step: who waits, and who is waited for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from crosswind.dashboards.downsample import buckets
from crosswind.dashboards.figures.chart import TABLE_ROWS, TITLE_PIXELS, Table, paper
from crosswind.dashboards.palette import BLUE, HAIRLINE, LOW, MUTED, PEER, VERMILION
from crosswind.dashboards.wording import count, percent, seconds, unit_of

MOST_RANKS, MOST_CELLS = 128, 20_000


@dataclass(frozen=True)
class RankRow:
    """One rank: its mean exposed wait, and the share of steps in which it waited least, so arrived last."""

    rank: int
    wait_seconds: float
    last_ratio: float


@dataclass(frozen=True)
class RankHeatMap:
    """Exposed wait in seconds by rank and step; with many steps, the longest wait of `steps_a_cell` neighbours.

    `waits[rank][column]` is None where nothing was recorded. With more than 128 ranks, those that wait least are
    shown: a rank that no other waits for is no suspect.
    """

    name: ClassVar[str] = "ranks"
    ranks: tuple[RankRow, ...]
    steps: tuple[int, ...]
    waits: tuple[tuple[float | None, ...], ...]
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
            f"rank {longest.rank} waits longest, {seconds(longest.wait_seconds)} a step.{cell}"
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a rank."""
        ranks = sorted(self.ranks, key=lambda row: -row.last_ratio)[:TABLE_ROWS]
        rows = ((str(row.rank), percent(row.last_ratio), seconds(row.wait_seconds)) for row in ranks)
        return Table(("rank", "arrived last in", "mean exposed wait a step"), tuple(rows))

    def draw(self) -> go.Figure:
        """The plotly figure."""
        scale, unit = unit_of(*(wait for row in self.waits for wait in row))
        names = [str(row.rank) for row in self.ranks]
        height = int(min(640, max(240, 150 + 28 * len(names))))
        figure = paper(self.title, height=height, x="step", y="rank")
        figure.add_heatmap(
            z=[[None if wait is None else wait / scale for wait in row] for row in self.waits],
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
            x=[row.last_ratio * 100 for row in self.ranks],
            xaxis="x2",
            marker={"color": [VERMILION if row == self.culprit else PEER for row in self.ranks], "line": {"width": 0}},
            hovertemplate="rank %{y} arrived last in %{x:.0f} % of steps<extra></extra>",
        )
        return figure.update_layout(_layout(figure.layout.xaxis.to_plotly_json()))


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


def _layout(axis: Mapping[str, Any]) -> dict[str, object]:
    margin = {"title": {**axis["title"], "text": "last, %"}, "range": [0, 100], "tickvals": [0, 50, 100]}
    # Plotly sets the title of a horizontal colour bar into the ticks, so an annotation is the title.
    step = {"text": "step", "x": 0.36, "y": 0, "xref": "paper", "yref": "paper", "yanchor": "top", "yshift": -22}
    return {
        "xaxis": {"domain": [0, 0.72], "showgrid": False, "anchor": "y", "title": {"text": ""}},
        "annotations": [{**step, "showarrow": False, "font": axis["title"]["font"]}],
        "xaxis2": {**axis, **margin, "domain": [0.78, 0.99], "anchor": "y"},
        "yaxis": {"type": "category", "showgrid": False, "autorange": "reversed", "linecolor": HAIRLINE},
        "showlegend": False,
        "bargap": 0.35,
        "margin": {"t": TITLE_PIXELS + 60, "b": 44},
    }


def rank_heat_map(steps: pd.DataFrame) -> RankHeatMap | None:
    """The heat-map of a run, or None with fewer than two ranks, no step that all recorded, or no communication.

    Args:
        steps: columns step, rank, comm_seconds.
    """
    waits = steps.pivot_table(index="rank", columns="step", values="comm_seconds", aggfunc="max")
    complete = waits.dropna(axis="columns")
    if len(waits) < 2 or complete.empty or not (complete.to_numpy() > 0).any():
        return None
    last = complete.idxmin().value_counts(normalize=True)
    means = zip(waits.index, waits.mean(axis="columns"), strict=True)
    rows = [RankRow(int(rank), float(wait), float(last.get(rank, 0.0))) for rank, wait in means]
    shown = sorted(sorted(rows, key=lambda row: row.wait_seconds)[:MOST_RANKS], key=lambda row: row.rank)
    cells = waits.loc[[row.rank for row in shown]]
    bucket = buckets(cells.shape[1], max(1, MOST_CELLS // len(shown)))
    thin = cells.T.groupby(bucket).max().T
    firsts = [int(step) for step in pd.Series(cells.columns).groupby(bucket).first()]
    size = int(np.bincount(bucket).max())
    return RankHeatMap(tuple(shown), tuple(firsts), _cells(thin), size, len(rows))


def _cells(frame: pd.DataFrame) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(None if np.isnan(cell) else float(cell) for cell in row) for row in frame.to_numpy())
