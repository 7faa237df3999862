"""The time of each traced rank, in classes that sum to its span."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, label, paper, rounded
from crosswind.dashboards.figures.traces.bars import MOST_PIXELS, NANOSECONDS, time
from crosswind.dashboards.palette import BLUE, GREEN, ORANGE, PEER, PURPLE, VERMILION, hatched
from crosswind.dashboards.wording import NONE, count, percent, unit_of
from crosswind.data.schema.answers.traces import TracedRank
from crosswind.data.schema.words import opening

MOST_RANKS = 48
LARGE = 0.05  # of the time: a smaller loss is no finding
USEFUL = ("compute", "overlapped")
COLOURS = (BLUE, GREEN, VERMILION, PURPLE, ORANGE, PEER)  # of the classes, in their order
PATTERNS = ("", "+", "/", "x", "\\", ".")
MEANINGS = (
    "Each instant counts once: as compute, overlapped (communication beside computation), exposed communication "
    "(nothing else runs), memory (copies alone), host-bound (idle, as nothing was launched) or idle (though work was)."
)


@dataclass(frozen=True)
class TimesOfRanks:
    """The classes of each rank's time; of more than 48 ranks, those for which others waited longest."""

    name: ClassVar[str] = "times"
    ranks: tuple[TracedRank, ...]
    rank_count: int

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes in their order."""
        return tuple(part.name for part in self.ranks[0].parts)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each class in the time of all ranks shown."""
        whole = sum(rank.span_ns for rank in self.ranks) or 1
        return tuple(sum(rank.parts[place].ns for rank in self.ranks) / whole for place in range(len(self.classes)))

    @property
    def title(self) -> str:
        """The finding."""
        losses = {name: share for name, share in zip(self.classes, self.shares, strict=True) if name not in USEFUL}
        worst = max(losses, key=lambda name: losses[name])
        if losses[worst] >= LARGE:
            rank = max(self.ranks, key=lambda rank: self._of(rank, worst))
            of = f"the ranks' time, most on rank {rank.rank}" if len(self.ranks) > 1 else f"rank {rank.rank}'s time"
            return f"{opening(worst)}: {percent(losses[worst])} of {of}"
        return f"Compute: {percent(sum(self.shares[: len(USEFUL)]))} of the ranks' time"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        shown = "" if self.rank_count == len(self.ranks) else f", {len(self.ranks)} of them"
        places = " and ".join(sorted({f"{rank.locations}s" for rank in self.ranks}))
        return f"Time of {count(self.rank_count, 'rank')}{shown}, on their {places}, which sums to the span. {MEANINGS}"

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a rank."""
        headers = ("rank", *self.classes, "span", "communication hidden")
        return Table(headers, tuple(self._row(rank) for rank in self.ranks))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*(rank.span_ns / NANOSECONDS for rank in self.ranks))
        height = min(MOST_PIXELS, max(210, 138 + 28 * len(self.ranks)))
        figure = paper(self.title, height=height, x=f"time, {unit}", y="rank")
        names = [str(rank.rank) for rank in self.ranks]
        for place, name in enumerate(self.classes):
            parts = [rank.parts[place] for rank in self.ranks]
            if not any(part.ns for part in parts):
                continue
            figure.add_bar(
                orientation="h",
                y=names,
                x=rounded([part.ns / NANOSECONDS for part in parts], scale),
                name=label(name),
                marker={
                    "color": COLOURS[place],
                    "pattern": hatched(*[PATTERNS[place]] * len(names)),
                    "line": {"width": 0},
                },
                hovertext=[
                    label(f"rank {rank}, {name}: {_part(part.ns, part.share)}")
                    for rank, part in zip(names, parts, strict=True)
                ],
                hoverinfo="text",
            )
        figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
        return figure.update_layout(barmode="stack", bargap=0.35, legend={"traceorder": "normal"})

    def _of(self, rank: TracedRank, name: str) -> int:
        return rank.parts[self.classes.index(name)].ns

    def _row(self, rank: TracedRank) -> tuple[str, ...]:
        hidden = NONE if rank.overlap_share is None else percent(rank.overlap_share)
        return (str(rank.rank), *(_part(part.ns, part.share) for part in rank.parts), time(rank.span_ns), hidden)


def _part(ns: float, share: float) -> str:
    return f"{time(ns)} ({percent(share)})"


def times_of_ranks(ranks: Sequence[TracedRank]) -> TimesOfRanks | None:
    """Return the figure; None where nothing took any time."""
    shown = sorted(sorted(ranks, key=lambda rank: -rank.caused_ns)[:MOST_RANKS], key=lambda rank: rank.rank)
    return TimesOfRanks(tuple(shown), len(ranks)) if any(rank.span_ns for rank in shown) else None
