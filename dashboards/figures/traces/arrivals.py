"""The waits of traced ranks for each other in collectives, and how often each rank came last."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, add_heat, paper, rounded
from crosswind.dashboards.figures.traces.bars import MOST_PIXELS, NANOSECONDS, time
from crosswind.dashboards.wording import count, percent, unit_of
from crosswind.data.schema.answers.traces import TracedRank

MOST_LATE, MOST_WAITING = 16, 128


@dataclass(frozen=True)
class LateRank:
    """A rank that came last: at how many collectives, and the wait that it caused each of the others, in ns."""

    rank: int
    times_last: int
    caused_ns: int
    waited_ns: tuple[int, ...]


@dataclass(frozen=True)
class ArrivalMatrix:
    """Waits for ranks that came last (rows) of all ranks (columns); of many the 16 that were waited for longest."""

    name: ClassVar[str] = "arrivals"
    late: tuple[LateRank, ...]
    ranks: tuple[int, ...]
    collectives: int

    @property
    def title(self) -> str:
        """The finding."""
        first = self.late[0]
        return (
            f"Others wait longest for rank {first.rank}: {time(first.caused_ns)} in all; "
            f"it comes last at {percent(self._share(first))} of collectives"
        )

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            f"Over {count(self.collectives, 'collective')} of {count(len(self.ranks), 'rank')}, the time that each "
            "rank waited for the one that came last. A wait is what a rank's collective took over the shortest one."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, a row for each rank that came last."""
        rows = tuple(
            (
                str(late.rank),
                f"{late.times_last} ({percent(self._share(late))})",
                time(late.caused_ns),
                self._most(late),
            )
            for late in self.late
        )
        return Table(("rank", "came last at", "others waited for it", "who waited longest"), rows)

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*(ns / NANOSECONDS for late in self.late for ns in late.waited_ns))
        height = min(MOST_PIXELS, 150 + 28 * len(self.late))
        figure = paper(self.title, height=height, x="rank that waited", y="for rank")
        rows = [[ns / NANOSECONDS if ns else None for ns in late.waited_ns] for late in self.late]
        add_heat(
            figure,
            z=[rounded(row, scale, digits=3) for row in rows],
            x=[str(rank) for rank in self.ranks],
            y=[f"{late.rank} (last at {percent(self._share(late))})" for late in self.late],
            zmin=0,
            unit=unit,
            hover=f"rank %{{x}} waited %{{z:.3~g}} {unit} for rank %{{y}}",
        )
        return figure.update_xaxes(type="category").update_yaxes(fixedrange=True)

    def _share(self, late: LateRank) -> float:
        return late.times_last / self.collectives

    def _most(self, late: LateRank) -> str:
        place = max(range(len(self.ranks)), key=lambda one: late.waited_ns[one])
        return f"rank {self.ranks[place]}, {time(late.waited_ns[place])}"


def arrival_matrix(ranks: Sequence[TracedRank]) -> ArrivalMatrix | None:
    """Return the figure; None where no rank waited for another."""
    waited = [rank for rank in ranks if rank.waited_for_ns][:MOST_WAITING]
    places = sorted(
        (place for place, rank in enumerate(ranks) if rank.caused_ns), key=lambda place: -ranks[place].caused_ns
    )
    if not places or not waited:
        return None
    late = tuple(
        LateRank(
            ranks[place].rank,
            ranks[place].times_last,
            ranks[place].caused_ns,
            tuple(rank.waited_for_ns[place] for rank in waited),
        )
        for place in places[:MOST_LATE]
    )
    return ArrivalMatrix(late, tuple(rank.rank for rank in waited), sum(rank.times_last for rank in ranks))
