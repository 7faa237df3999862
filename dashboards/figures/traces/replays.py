"""The time that a traced run would save without one cause of its losses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table
from crosswind.dashboards.figures.traces.bars import Row, bars, time
from crosswind.dashboards.palette import BLUE, PEER, VERMILION
from crosswind.dashboards.wording import percent
from crosswind.data.schema.answers.traces import NOTED, TraceWhatIf

MOST = 10
SHOWN = 5e-4  # of the time: what saves less is left out


@dataclass(frozen=True)
class Replays:
    """Replays without a cause each, what saves most first."""

    name: ClassVar[str] = "replays"
    without: tuple[TraceWhatIf, ...]

    @property
    def title(self) -> str:
        """The finding."""
        first = self.without[0]
        if _share(first) < NOTED:
            return "No single cause costs 1 % of the time"
        return f"Without {first.cause} it would take {percent(_share(first))} less: S = {first.slowdown:.3f}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        return (
            f"The measured time of {time(self.without[0].measured_ns)} replayed with one cause taken out; "
            "S is measured over replayed time, 1 where nothing is gained. Savings of several causes do not add up."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, a row a cause."""
        rows = tuple(
            (one.cause, f"{one.slowdown:.3f}", time(one.replayed_ns), time(one.saved_ns_per_step), percent(_share(one)))
            for one in self.without
        )
        return Table(("without", "S", "replayed", "saved a step", "saved"), rows)

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        first = max(self.without, key=lambda one: one.saved_ns_per_step)
        rows = [_row(one, is_first=one is first and _share(one) >= NOTED) for one in self.without]
        return bars(self.title, rows, axis="saved a step")


def _share(one: TraceWhatIf) -> float:
    return 1 - one.replayed_ns / one.measured_ns if one.measured_ns else 0.0


def _row(one: TraceWhatIf, *, is_first: bool) -> Row:
    colour = VERMILION if is_first else BLUE if _share(one) >= NOTED else PEER
    note = f"S = {one.slowdown:.3f}, saves {percent(_share(one))}"
    return Row(one.cause, note, one.saved_ns_per_step, colour, f"without {one.cause}: {note}")


def replays(without: Sequence[TraceWhatIf]) -> Replays | None:
    """Return the figure of those that save anything, or of the first; None without replays."""
    saving = [one for one in without if _share(one) >= SHOWN] or without[:1]
    return Replays(tuple(saving[:MOST])) if without else None
