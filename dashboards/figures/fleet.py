"""Nodes, devices or places of a fleet in one row, the slowest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.palette import BLUE, MUTED, ORANGE, VERMILION
from crosswind.dashboards.wording import count, number, percent, times
from crosswind.data.schema.answers.stragglers import PeerKind, RankedPeer
from crosswind.models.stragglers.ranking import SLOWER

DRAWN = 500
MAYBE = 0.5  # probability of being slower from which on a peer is marked to watch
LOOKS = {  # the word, colour and symbol of each
    "slower than its peers": (VERMILION, "triangle-up"),
    "may be slower": (ORANGE, "diamond"),
    "as its peers": (BLUE, "circle-open"),
}
LABELLED = 5  # stragglers named in the figure


@dataclass(frozen=True)
class Fleet:
    """Things of one kind, the slowest first; of `compared` these are the slowest."""

    name: ClassVar[str] = "fleet"
    kind: PeerKind
    ranked: tuple[RankedPeer, ...]
    compared: int

    @property
    def title(self) -> str:
        """The finding."""
        named = [entry for entry in self.ranked if entry.named]
        if not named:
            return f"No {self.kind} of {self.compared} is surely slower than its peers"
        worst = max(named, key=lambda entry: entry.ratio)
        if len(named) == 1:
            return f"{worst.name} takes {times(worst.ratio)} the time of its peers"
        return f"{count(len(named), str(self.kind))} take {number(min(entry.ratio for entry in named))} to " + (
            f"{times(worst.ratio)} the time of their peers"
        )

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        part = f"the {len(self.ranked)} slowest of " if len(self.ranked) < self.compared else ""
        return (
            f"Time over the peers' median of {part}{count(self.compared, str(self.kind))}, shrunken by how little is "
            f"known; lines are 90 % intervals, the dotted line is {percent(SLOWER)} slower."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, the slowest first."""
        rows = (
            (entry.name, entry.system, _range(entry), percent(entry.chance_slower), str(entry.runs))
            for entry in self.ranked[:TABLE_ROWS]
        )
        return Table(
            (str(self.kind), "system", "time of its peers [90 % interval]", "surely slower", "runs"), tuple(rows)
        )

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        figure = paper(self.title, height=320, x=f"{self.kind}s, the slowest first", y="time / peers' median")
        for word, (colour, symbol) in LOOKS.items():
            places = [place for place, entry in enumerate(self.ranked) if _word(entry) == word]
            if places:
                marker = {"color": colour, "symbol": symbol, "size": 9}
                figure.add_scatter(**self._marks(places), name=word, marker=marker)
        named = [place for place, entry in enumerate(self.ranked) if entry.named][:LABELLED]
        for place in named:
            text = label(self.ranked[place].name[:24])
            figure.add_annotation(
                x=place + 1, y=self.ranked[place].high_ratio, text=text, showarrow=False, yshift=9, xanchor="left"
            )
        figure.add_hline(1, line={"color": MUTED, "width": 1, "dash": "dash"}, layer="below")
        figure.add_hline(1 + SLOWER, line={"color": MUTED, "width": 1, "dash": "dot"}, layer="below")
        tick = max(1, round(len(self.ranked) / 8))
        return figure.update_xaxes(showgrid=False, range=[0.4, len(self.ranked) + 0.6], dtick=tick, tick0=1)

    def _marks(self, places: Sequence[int]) -> dict[str, object]:
        rows = [self.ranked[place] for place in places]
        return {
            "x": [place + 1 for place in places],
            "y": [entry.ratio for entry in rows],
            "error_y": {
                "type": "data",
                "array": [entry.high_ratio - entry.ratio for entry in rows],
                "arrayminus": [entry.ratio - entry.low_ratio for entry in rows],
                "thickness": 1,
                "width": 0,
            },
            "mode": "markers",
            "customdata": [
                [entry.name, f"{label(entry.name)}<br>{_range(entry)}, {count(entry.runs, 'run')}"] for entry in rows
            ],
            "hovertemplate": "%{customdata[1]}<extra></extra>",
        }


def fleet_plot(kind: PeerKind, ranked: Sequence[RankedPeer]) -> Fleet | None:
    """The things of a kind among those ranked, or None without any."""
    of_kind = sorted((entry for entry in ranked if entry.kind is kind), key=lambda entry: -entry.ratio)
    return Fleet(kind, tuple(of_kind[:DRAWN]), len(of_kind)) if of_kind else None


def _word(entry: RankedPeer) -> str:
    slower, maybe, alike = LOOKS
    if entry.named:
        return slower
    return maybe if entry.chance_slower >= MAYBE else alike


def _range(entry: RankedPeer) -> str:
    return f"{times(entry.ratio)} [{number(entry.low_ratio)} to {number(entry.high_ratio)}]"
