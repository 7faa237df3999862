"""Effects of counters or neighbours, each with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, label, paper
from crosswind.dashboards.palette import INK, MUTED, PEER, VERMILION
from crosswind.dashboards.wording import number, signed, times

ROWS = 15  # drawn; more would not be read
LETTERS = 46  # of a name; as many as a narrow page holds
MARGIN = 0.05  # of the axis, on both sides
ROW_PIXELS, AROUND_PIXELS = 34, 110


@dataclass(frozen=True)
class Effect:
    """One row: how many times as long runs take, or another measure, with its 90 % interval; `note` says how sure."""

    name: str
    ratio: float
    low: float
    high: float
    is_sure: bool
    note: str


@dataclass(frozen=True)
class Effects:
    """The surest effects, in the order given: `axis` is what the ratios are of, `verdicts` of sure and other ones.

    `nothing` is the value that means no effect: 1 of a ratio, 0 of a correlation.
    """

    name: ClassVar[str] = "effects"
    effects: tuple[Effect, ...]
    finding: str
    axis: str
    verdicts: tuple[str, str]
    nothing: float = 1.0

    @property
    def title(self) -> str:
        """The finding."""
        return self.finding

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        sure = sum(effect.is_sure for effect in self.effects)
        return (
            f"{self.axis[:1].upper()}{self.axis[1:]}, of the {len(self.effects)} most certain; {sure} marked: "
            f"{self.verdicts[0]}. Lines are 90 % intervals, {self.nothing:.0f} is no difference."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn."""
        rows = ((effect.name, self._range(effect), effect.note, self._word(effect)) for effect in self.effects)
        return Table(("what", f"{self.axis} [90 % interval]", "how sure", "verdict"), tuple(rows))

    def draw(self) -> Figure:
        """The plotly figure; names are above their rows, to take no width from a narrow page."""
        figure = paper(self.title, height=AROUND_PIXELS + ROW_PIXELS * len(self.effects), x=self.axis, y="")
        for is_sure, colour, symbol in ((True, VERMILION, "triangle-up"), (False, PEER, "circle-open")):
            places = [place for place, effect in enumerate(self.effects) if effect.is_sure is is_sure]
            if places:
                figure.add_scatter(**self._marks(places), marker={"color": colour, "symbol": symbol, "size": 10})
        for place, labelled in enumerate(self.effects):
            figure.add_annotation(
                x=0,
                xref="paper",
                y=place,
                text=label(labelled.name if len(labelled.name) <= LETTERS else f"{labelled.name[: LETTERS - 1]}\u2026"),
                showarrow=False,
                xanchor="left",
                yshift=13,
                font={"size": 12, "color": INK if labelled.is_sure else MUTED},
            )
        figure.add_vline(self.nothing, line={"color": MUTED, "width": 1, "dash": "dash"}, layer="below")
        least, most = (
            min([self.nothing, *(effect.low for effect in self.effects)]),
            max([self.nothing, *(effect.high for effect in self.effects)]),
        )
        figure.update_xaxes(range=[least - MARGIN * (most - least), most + MARGIN * (most - least)])
        rows = {"range": [len(self.effects) - 0.4, -0.9], "showticklabels": False, "showgrid": False, "ticks": ""}
        return figure.update_yaxes(**rows).update_layout(showlegend=True)

    def _marks(self, places: Sequence[int]) -> dict[str, object]:
        rows = [self.effects[place] for place in places]
        return {
            "x": [effect.ratio for effect in rows],
            "y": list(places),
            "error_x": {
                "type": "data",
                "array": [effect.high - effect.ratio for effect in rows],
                "arrayminus": [effect.ratio - effect.low for effect in rows],
                "thickness": 1.5,
                "width": 0,
            },
            "mode": "markers",
            "name": self._word(rows[0]),
            "hovertext": [f"{label(effect.name)}<br>{self._range(effect)}, {label(effect.note)}" for effect in rows],
            "hoverinfo": "text",
        }

    def _word(self, effect: Effect) -> str:
        return self.verdicts[not effect.is_sure]

    def _range(self, effect: Effect) -> str:
        value = times(effect.ratio) if self.nothing else signed(effect.ratio)
        return f"{value} [{number(effect.low)} to {number(effect.high)}]"


def effects_plot(effects: Sequence[Effect], *, finding: str, axis: str, verdicts: tuple[str, str]) -> Effects | None:
    """The first effects, or None without any."""
    return Effects(tuple(effects[:ROWS]), finding, axis, verdicts) if effects else None
