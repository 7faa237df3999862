"""Values that a check measured on each node, with the usual range."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import TABLE_ROWS, Table, label, paper
from crosswind.dashboards.palette import BLUE, INK, MUTED, VERMILION
from crosswind.dashboards.wording import count, percent
from crosswind.data.schema.checks import QUANTITIES
from crosswind.data.schema.words import words
from crosswind.models.preflight.findings import Finding

DRAWN = 300  # values of one measure, the worst
ROW_PIXELS, AROUND_PIXELS = 44, 110


@dataclass(frozen=True)
class CheckedValue:
    """One value as a share of the usual, turned so that less is always worse."""

    place: str
    measure: str
    goodness: float
    is_slow: bool


@dataclass(frozen=True)
class CheckedValues:
    """The values of a check that have a usual value, by measure; the worst first."""

    name: ClassVar[str] = "checks"
    values: tuple[CheckedValue, ...]

    @property
    def title(self) -> str:
        """The finding."""
        slow = [value for value in self.values if value.is_slow]
        if not slow:
            return f"All {count(len(self.values), 'value')} are as usual"
        worst = slow[0]
        return f"{worst.place} reaches {percent(worst.goodness)} of the usual {words(worst.measure)}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        slow = sum(value.is_slow for value in self.values)
        return (
            f"{count(len(self.values), 'value')} as shares of what is usual, {slow} of them slow; of times and noise, "
            "which are better the smaller, the usual over the value."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn, the worst first."""
        rows = (
            (value.place, words(value.measure), percent(value.goodness), "slow" if value.is_slow else "as usual")
            for value in self.values[:TABLE_ROWS]
        )
        return Table(("where", "measure", "of the usual", "verdict"), tuple(rows))

    def draw(self) -> Figure:
        """The figure for plotly.js."""
        present = {value.measure for value in self.values}
        measures = [name for name in QUANTITIES if name in present]
        height = AROUND_PIXELS + ROW_PIXELS * len(measures)
        figure = paper(self.title, height=height, x="share of the usual, %", y="")
        for is_slow, word, colour, symbol in (
            (False, "as usual", BLUE, "circle-open"),
            (True, "slow", VERMILION, "triangle-up"),
        ):
            shown = [value for name in measures for value in self._of(name) if value.is_slow is is_slow]
            if shown:
                figure.add_scatter(
                    x=[100 * value.goodness for value in shown],
                    y=[measures.index(value.measure) for value in shown],
                    name=word,
                    mode="markers",
                    marker={"color": colour, "symbol": symbol, "size": 10},
                    hovertext=[f"{label(value.place)}: {percent(value.goodness)} of usual" for value in shown],
                    hoverinfo="text",
                )
        figure.add_vline(100, line={"color": MUTED, "width": 1, "dash": "dash"}, layer="below")
        figure.update_xaxes(rangemode="tozero")
        return figure.update_yaxes(
            tickvals=list(range(len(measures))),
            ticktext=list(map(words, measures)),
            range=[len(measures) - 0.5, -0.5],
            tickfont={"color": INK},
        )

    def _of(self, measure: str) -> list[CheckedValue]:
        return [value for value in self.values if value.measure == measure][: DRAWN // 2]


def checked_values(findings: Sequence[Finding]) -> CheckedValues | None:
    """Return the findings that have a usual value, or None without any."""
    values = [
        CheckedValue(
            place_of(finding),
            finding.measure,
            finding.ratio if QUANTITIES[finding.measure].is_more_better else 1 / finding.ratio,
            finding.is_slow,
        )
        for finding in findings
        if finding.ratio
    ]
    return (
        CheckedValues(tuple(sorted(values, key=lambda value: (not value.is_slow, value.goodness)))) if values else None
    )


def place_of(finding: Finding) -> str:
    """Return where a finding was measured: `n0 - n2`, `n1 gpu3`, `n1`."""
    if finding.peer:
        return f"{finding.node} - {finding.peer}"
    return f"{finding.node} {finding.device}" if finding.device and finding.device != "cpu" else finding.node
