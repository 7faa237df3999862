"""The time of collectives by operation: the transfer, and the wait for the last rank."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, label, paper, rounded
from crosswind.dashboards.figures.traces.bars import AROUND_PIXELS, NANOSECONDS, ROW_PIXELS, short, time
from crosswind.dashboards.palette import BLUE, VERMILION, hatched
from crosswind.dashboards.wording import NONE, percent, size, unit_of
from crosswind.data.schema.answers.traces import TracedCollectives
from crosswind.data.schema.words import opening, words

MOST = 12


@dataclass(frozen=True)
class Exchanges:
    """Collectives by operation, those with the longest time first; waits are means of the ranks."""

    name: ClassVar[str] = "exchanges"
    operations: tuple[TracedCollectives, ...]
    ranks: int

    @property
    def title(self) -> str:
        """The finding."""
        transfer = sum(one.transfer_ns for one in self.operations)
        wait = sum(map(self._wait, self.operations))
        share = percent(wait / (wait + transfer)) if wait + transfer else percent(0.0)
        first = self.operations[0]
        longest = f"{opening(first.operation)} takes longest, {time(self._whole(first))} a rank"
        return f"{longest}; {share} of all collectives is wait"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            "Collectives in which two ranks or more are traced, by operation. The shortest duration of all ranks is "
            "the transfer, what a rank has over it is wait; of the waits the mean of all ranks is shown."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, a row an operation."""
        rows = tuple(
            (
                words(one.operation),
                str(one.count),
                time(one.transfer_ns),
                time(self._wait(one)),
                NONE if one.bytes is None else size(one.bytes),
            )
            for one in self.operations
        )
        return Table(("operation", "count", "transfer", "wait, mean of ranks", "bytes of a rank"), rows)

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        scale, unit = unit_of(*(self._whole(one) / NANOSECONDS for one in self.operations))
        height = 40 + AROUND_PIXELS + ROW_PIXELS * len(self.operations)
        figure = paper(self.title, height=height, x=f"time of a rank, {unit}", y="")
        names = [label(f"{short(words(one.operation))} ({one.count})") for one in self.operations]
        for name, colour, pattern, part in (
            ("transfer", BLUE, "", lambda one: one.transfer_ns),
            ("wait for the last rank", VERMILION, "/", self._wait),
        ):
            times = [part(one) for one in self.operations]
            figure.add_bar(
                orientation="h",
                y=names,
                x=rounded([ns / NANOSECONDS for ns in times], scale),
                name=name,
                marker={"color": colour, "pattern": hatched(*[pattern] * len(names)), "line": {"width": 0}},
                hovertext=[
                    label(f"{words(one.operation)}, {name}: {time(ns)}")
                    for one, ns in zip(self.operations, times, strict=True)
                ],
                hoverinfo="text",
            )
        figure.update_yaxes(type="category", autorange="reversed", showgrid=False, fixedrange=True)
        return figure.update_layout(barmode="stack", bargap=0.4, legend={"traceorder": "normal"})

    def _wait(self, one: TracedCollectives) -> float:
        return one.wait_ns / self.ranks

    def _whole(self, one: TracedCollectives) -> float:
        return one.transfer_ns + self._wait(one)


def exchanges(collectives: Sequence[TracedCollectives], ranks: int) -> Exchanges | None:
    """Return the figure of so many ranks; None without collectives of two ranks."""
    return Exchanges(tuple(collectives[:MOST]), ranks) if collectives else None
