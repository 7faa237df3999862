"""The way from the time that was expected, cause by cause, to the time that was measured."""

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar

import plotly.graph_objects as go

from crosswind.dashboards.figures.chart import Table, label, paper
from crosswind.dashboards.palette import BLUE, GREEN, INK, MUTED, ORANGE, PEER, VERMILION, hatched
from crosswind.dashboards.wording import axis_unit, estimate, percent, seconds
from crosswind.data.schema.answers.explanations import UNKNOWN, Explanation, Interval
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.words import opening, words

ROW_PIXELS, AROUND_PIXELS = 46, 92
UNEXPLAINED = "unexplained"
LEAST_SPAN = 0.01  # of the measured time: an axis over less than its rounding has no distinct ticks


@dataclass(frozen=True)
class Drop:
    """One cause's bar: it starts where the one before it ended."""

    cause: str
    start: float
    seconds: Interval
    is_main: bool

    @property
    def end(self) -> float:
        """The end of the bar."""
        return self.start + self.seconds.value


@dataclass(frozen=True)
class Waterfall:
    """The excess of a run, from expected to measured seconds; the drops sum to their difference."""

    name: ClassVar[str] = "waterfall"
    expected_seconds: float
    measured_seconds: float
    drops: tuple[Drop, ...]

    @property
    def title(self) -> str:
        """The finding."""
        excess = self.measured_seconds - self.expected_seconds
        main = next((drop for drop in self.drops if drop.is_main), None)
        if main is None or excess <= 0:
            return f"Measured {seconds(self.measured_seconds)}, expected {seconds(self.expected_seconds)}"
        return f"{opening(main.cause)} took {seconds(main.seconds.value)} of {seconds(excess)} in excess"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        parts = ", ".join(f"{words(drop.cause)} {seconds(drop.seconds.value)}" for drop in self.drops)
        return (
            f"From {seconds(self.expected_seconds)} expected to {seconds(self.measured_seconds)} measured: {parts}. "
            "Whiskers are 90 % intervals."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn."""
        excess = self.measured_seconds - self.expected_seconds
        causes = [(words(drop.cause), _of(drop.seconds), _share(drop.seconds.value, excess)) for drop in self.drops]
        expected, measured = seconds(self.expected_seconds), seconds(self.measured_seconds)
        rows = (("expected", expected, ""), *causes, ("measured", measured, ""))
        return Table(("cause", "time [90 % interval]", "share of the excess"), rows)

    def draw(self) -> go.Figure:
        """The plotly figure."""
        scale, unit = axis_unit(self.measured_seconds, self.expected_seconds)
        figure = paper(
            self.title,
            height=AROUND_PIXELS + ROW_PIXELS * (len(self.drops) + 2),
            x=f"time, {unit}",
            y="",
        )
        rows = list(range(len(self.drops) + 2))
        figure.add_bar(**self._bars(scale), width=0.5)
        for row, seconds_, colour, symbol in (
            (rows[0], self.expected_seconds, PEER, "diamond"),
            (rows[-1], self.measured_seconds, BLUE, "circle"),
        ):
            figure.add_scatter(
                x=[seconds_ / scale],
                y=[row],
                mode="markers",
                marker={"color": colour, "size": 13, "symbol": symbol},
                hovertext=[seconds(seconds_)],
                hoverinfo="text",
            )
        self._connect(figure, scale)
        if (span := self._least_span()) is not None:
            figure.update_xaxes(range=[edge / scale for edge in span])
        figure.update_yaxes(
            tickvals=rows, ticktext=self._ticks(), range=[rows[-1] + 0.6, -0.6], showgrid=False, tickfont={"color": INK}
        )
        return figure.update_layout(showlegend=False, bargap=0)

    def _least_span(self) -> tuple[float, float] | None:
        """Return the time axis of a run that took just what was expected; None where the drops span more."""
        ends = [
            edge
            for drop in self.drops
            for edge in (drop.start, drop.start + drop.seconds.low, drop.start + drop.seconds.high)
        ]
        low, high = (pick((self.expected_seconds, self.measured_seconds, *ends)) for pick in (min, max))
        least = LEAST_SPAN * self.measured_seconds
        return None if high - low >= least else ((low + high - least) / 2, (low + high + least) / 2)

    def _bars(self, scale: float) -> dict[str, object]:
        intervals = [drop.seconds for drop in self.drops]
        return {
            "orientation": "h",
            "y": list(range(1, len(self.drops) + 1)),
            "base": [drop.start / scale for drop in self.drops],
            "x": [interval.value / scale for interval in intervals],
            "marker": {
                "color": [_colour(drop) for drop in self.drops],
                "pattern": hatched(*("/" if drop.cause == UNEXPLAINED else "" for drop in self.drops)),
                "line": {"width": 0},
            },
            "error_x": {
                "type": "data",
                "array": [(interval.high - interval.value) / scale for interval in intervals],
                "arrayminus": [(interval.value - interval.low) / scale for interval in intervals],
                "color": MUTED,
                "thickness": 1.5,
                "width": 4,
            },
            "hovertext": [f"{label(words(drop.cause))}: {_of(drop.seconds)}" for drop in self.drops],
            "hoverinfo": "text",
        }

    def _connect(self, figure: go.Figure, scale: float) -> None:
        levels = [self.expected_seconds, *(drop.end for drop in self.drops)]
        for row, (_, level) in enumerate(pairwise([levels[0], *levels])):
            figure.add_shape(
                type="line",
                x0=level / scale,
                x1=level / scale,
                y0=row,
                y1=row + 1,
                layer="below",
                line={"color": PEER, "width": 1, "dash": "dot"},
            )

    def _ticks(self) -> list[str]:
        causes = [_tick(words(drop.cause), _of(drop.seconds)) for drop in self.drops]
        expected, measured = seconds(self.expected_seconds), seconds(self.measured_seconds)
        return [_tick("expected", expected), *causes, _tick("measured", measured)]


def waterfall(explanation: Explanation) -> Waterfall:
    """The waterfall of an explanation; causes from the largest to the smallest, unexplained last.

    Raises: InvalidInputError when the explanation abstains, or does not add up.
    """
    expected, measured = explanation.expected_seconds, explanation.measured_seconds
    if expected is None or measured is None or explanation.unexplained is None:
        raise InvalidInputError(f"explanation of run {explanation.run_id!r} has no numbers: {explanation.verdict}")
    shares = sorted(explanation.shares, key=lambda share: -abs(share.seconds.value))
    parts = [(share.cause, share.seconds) for share in shares] + [(UNEXPLAINED, explanation.unexplained)]
    starts = list(accumulate((interval.value for _, interval in parts), initial=expected))
    if abs(starts[-1] - measured) > 1e-6 * max(abs(measured), abs(expected), 1e-3):
        raise InvalidInputError(
            f"explanation of run {explanation.run_id!r} sums to {starts[-1]} s, expected {measured} s"
        )
    drops = (
        Drop(cause, start, interval, cause == (UNEXPLAINED if explanation.cause == UNKNOWN else explanation.cause))
        for (cause, interval), start in zip(parts, starts[:-1], strict=True)
    )
    return Waterfall(expected, measured, tuple(drops))


def _colour(drop: Drop) -> str:
    if drop.cause == UNEXPLAINED:
        return PEER
    if drop.seconds.value < 0:
        return GREEN
    return VERMILION if drop.is_main else ORANGE


def _of(interval: Interval) -> str:
    return estimate(interval.value, interval.low, interval.high)


def _share(part: float, whole: float) -> str:
    return percent(part / whole) if whole > 0 else ""


def _tick(first: str, second: str) -> str:
    return f"{label(first)}<br><span style='font-size:12px'>{second}</span>"
