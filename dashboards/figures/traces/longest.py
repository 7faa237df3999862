"""The kernels and the operators of traces with the longest time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table
from crosswind.dashboards.figures.traces.bars import TABLE_LENGTH, Row, bars, own_name, short, time
from crosswind.dashboards.palette import BLUE, PURPLE, VERMILION
from crosswind.dashboards.wording import NONE, count, percent
from crosswind.data.schema.answers.traces import TracePart

MOST = 12
COLOURS = {"collective": VERMILION, "copy": PURPLE}


@dataclass(frozen=True)
class Longest:
    """Names with the longest time, the longest first."""

    parts: tuple[TracePart, ...]
    noun: ClassVar[str] = ""
    whose: ClassVar[str] = ""
    meaning: ClassVar[str] = ""

    @property
    def title(self) -> str:
        """The finding."""
        first = self.parts[0]
        return f"{short(own_name(first.name), 48)} takes {percent(first.share)} of the {self.whose} time"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return f"{count(len(self.parts), self.noun)} with the longest time of all ranks. {self.meaning}"

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a name."""
        rows = tuple(
            (short(part.name, TABLE_LENGTH), part.kind, time(part.ns), percent(part.share), _times(part))
            for part in self.parts
        )
        return Table((self.noun, "kind", "time", "share", "ran"), rows)

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        rows = [
            Row(
                part.name, f"{time(part.ns)}, {percent(part.share)}", part.ns, COLOURS.get(part.kind, BLUE), _said(part)
            )
            for part in self.parts
        ]
        return bars(self.title, rows, axis="on all ranks")


@dataclass(frozen=True)
class LongestKernels(Longest):
    """Kernels, collectives and copies."""

    name: ClassVar[str] = "kernels"
    noun: ClassVar[str] = "kernel"
    whose: ClassVar[str] = "kernels'"
    meaning: ClassVar[str] = (
        "Kernels that overlap count twice. Computation is blue, collectives are vermilion, which includes their waits, "
        "and copies purple."
    )


@dataclass(frozen=True)
class LongestOperators(Longest):
    """Operators."""

    name: ClassVar[str] = "operators"
    noun: ClassVar[str] = "operator"
    whose: ClassVar[str] = "operators'"
    meaning: ClassVar[str] = (
        "The time on devices that an operator itself launches, without that of operators within it; without a device "
        "its own time on the host."
    )


def _times(part: TracePart) -> str:
    return NONE if part.count is None else count(part.count, "time")


def _said(part: TracePart) -> str:
    return f"{short(part.name, TABLE_LENGTH)}: {time(part.ns)}, {percent(part.share)}, ran {_times(part)}"


def longest_kernels(parts: Sequence[TracePart]) -> LongestKernels | None:
    """Return the figure of kernels; None without any."""
    return LongestKernels(tuple(parts[:MOST])) if parts else None


def longest_operators(parts: Sequence[TracePart]) -> LongestOperators | None:
    """Return the figure of operators; None without any."""
    return LongestOperators(tuple(parts[:MOST])) if parts else None
