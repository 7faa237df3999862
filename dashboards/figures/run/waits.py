"""Waits of ranks for each other: the seconds that they cost each other."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, add_heat, paper, rounded
from crosswind.dashboards.wording import count, percent, seconds, unit_of
from crosswind.data.schema.answers.explanations import Wait

MOST_CULPRITS, TABLE_EDGES = 12, 20


@dataclass(frozen=True)
class WaitMap:
    """Seconds that a rank (row) cost another (column), of the pairs that waited longest."""

    name: ClassVar[str] = "waits"
    culprits: tuple[int, ...]
    victims: tuple[int, ...]
    edges: tuple[Wait, ...]
    lost_seconds: float
    steps: int

    @property
    def title(self) -> str:
        """The finding."""
        cost = self._cost(self.culprits[0])
        return (
            f"Ranks waited longest for rank {self.culprits[0]}: {seconds(cost)} of {seconds(self.lost_seconds)} in all"
        )

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        first = self.edges[0]
        return (
            f"Waits beyond those of the rank that arrived last, summed over {count(self.steps, 'step')}; "
            f"rank {first.victim} waited longest for rank {first.culprit}: {seconds(first.seconds)}."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a pair."""
        rows = tuple(
            (str(edge.culprit), str(edge.victim), seconds(edge.seconds), percent(edge.steps / self.steps))
            for edge in self.edges[:TABLE_EDGES]
        )
        return Table(("waited for rank", "rank that waited", "time", "in steps"), rows)

    def _cost(self, culprit: int) -> float:
        return sum(edge.seconds for edge in self.edges if edge.culprit == culprit)

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        waited = {(edge.culprit, edge.victim): edge.seconds for edge in self.edges}
        scale, unit = unit_of(*waited.values())
        figure = paper(self.title, height=130 + 28 * len(self.culprits), x="rank that waited", y="waited for rank")
        rows = [[waited.get((culprit, victim)) for victim in self.victims] for culprit in self.culprits]
        add_heat(
            figure,
            z=[rounded(row, scale, digits=3) for row in rows],
            x=[str(rank) for rank in self.victims],
            y=[str(rank) for rank in self.culprits],
            zmin=0,
            unit=unit,
            hover=f"rank %{{x}} waited %{{z:.3~g}} {unit} for rank %{{y}}",
        )
        return figure.update_xaxes(type="category")


def wait_map(edges: pd.DataFrame) -> WaitMap | None:
    """The map of a run's waits; None where no rank waited for another.

    Args:
        edges: columns culprit, victim, seconds, steps, a row a pair, the largest first; and of all pairs, the same in
            every row, lost_seconds and of_steps.
    """
    if edges.empty:
        return None
    culprits = [int(rank) for rank in edges.groupby("culprit")["seconds"].sum().nlargest(MOST_CULPRITS).index]
    rows = zip(*(edges[name] for name in ("culprit", "victim", "seconds", "steps")), strict=True)
    waits = [Wait(int(culprit), int(victim), float(time), int(steps)) for culprit, victim, time, steps in rows]
    shown = tuple(wait for wait in waits if wait.culprit in culprits)
    victims = tuple(sorted({wait.victim for wait in shown}))
    lost, steps = float(edges["lost_seconds"].iloc[0]), int(edges["of_steps"].iloc[0])
    return WaitMap(tuple(culprits), victims, shown, lost, steps)
