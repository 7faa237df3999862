"""The critical path of a traced run: whose activities took its time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table
from crosswind.dashboards.figures.traces.bars import TABLE_LENGTH, Row, bars, short, time
from crosswind.dashboards.palette import BLUE, PEER, PURPLE
from crosswind.dashboards.wording import percent
from crosswind.data.schema.answers.traces import TracedPath, TracePart
from crosswind.data.schema.words import capital

MOST_WORKS, MOST_RANKS, MOST_NAMES = 7, 5, 3
DRAWN = 0.005  # of the path: shorter parts are in the table alone


@dataclass(frozen=True)
class PathShares:
    """The parts of the critical path by class of work, and the ranks and names that have most of it."""

    name: ClassVar[str] = "path"
    path: TracedPath

    @property
    def title(self) -> str:
        """The finding."""
        work = max(self.path.works, key=lambda part: part.ns)
        ranks = self.path.ranks
        most = max(ranks, key=lambda part: part.ns) if len(ranks) > 1 else None
        of = f"; {percent(most.share)} is on {most.name}" if most else ""
        return f"{capital(work.name)}: {percent(work.share)} of the critical path{of}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            f"The chain of activities, each begun by the one before it, that took all of {time(self.path.span_ns)}: "
            "by class of work, in blue, by rank, in grey, and by name, in purple. What is not on it costs no time."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn."""
        rows = [
            (kind, short(part.name, TABLE_LENGTH), time(part.ns), percent(part.share)) for kind, part in self._parts
        ]
        return Table(("by", "part", "time", "share of the path"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        colours = {"class": BLUE, "rank": PEER, "name": PURPLE}
        rows = [
            Row(part.name, f"{time(part.ns)}, {percent(part.share)}", part.ns, colours[kind], _said(part))
            for kind, part in self._parts
            if part.share >= DRAWN
        ]
        return bars(self.title, rows, axis="on the path")

    @property
    def _parts(self) -> list[tuple[str, TracePart]]:
        parts = {
            "class": (self.path.works, MOST_WORKS),
            "rank": (self.path.ranks, MOST_RANKS),
            "name": (self.path.names, MOST_NAMES),
        }
        return [(kind, part) for kind, (some, most) in parts.items() for part in _longest(some, most)]


def _longest(parts: Sequence[TracePart], most: int) -> list[TracePart]:
    return sorted((part for part in parts if part.ns), key=lambda part: -part.ns)[:most]


def _said(part: TracePart) -> str:
    return f"{short(part.name, TABLE_LENGTH)}: {time(part.ns)}, {percent(part.share)}"


def path_shares(path: TracedPath) -> PathShares | None:
    """Return the figure; None for a path without time."""
    return PathShares(path) if any(part.ns for part in path.works) else None
