"""The way from the time that was expected, cause by cause, to the time that was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, label, paper
from crosswind.dashboards.palette import BLUE, GREEN, INK, MUTED, ORANGE, PEER, VERMILION, hatched
from crosswind.dashboards.wording import axis_unit, estimate, percent, seconds
from crosswind.data.schema.answers.explanations import UNKNOWN, CauseShare, Comparison, Explanation, Interval
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.words import capital, opening, words
from crosswind.models.explain.compare import differs

ROW_PIXELS, AROUND_PIXELS = 46, 92
UNEXPLAINED, MORE_STEPS = "unexplained", "more_steps"
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
    """The excess of a run, from expected to measured seconds; the drops sum to their difference.

    `ends` are words for the two, `excess_words` for the difference.
    """

    name: ClassVar[str] = "waterfall"
    expected_seconds: float
    measured_seconds: float
    drops: tuple[Drop, ...]
    ends: tuple[str, str] = ("expected", "measured")
    excess_words: str = "in excess"

    @property
    def title(self) -> str:
        """The finding."""
        excess = self.measured_seconds - self.expected_seconds
        main = next((drop for drop in self.drops if drop.is_main), None)
        if main is None or excess <= 0:
            first, last = self.ends
            return f"{capital(last)} {seconds(self.measured_seconds)}, {first} {seconds(self.expected_seconds)}"
        return f"{opening(main.cause)} took {seconds(main.seconds.value)} of {seconds(excess)} {self.excess_words}"

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        parts = ", ".join(f"{words(drop.cause)} {seconds(drop.seconds.value)}" for drop in self.drops)
        return (
            f"From {seconds(self.expected_seconds)} {self.ends[0]} to {seconds(self.measured_seconds)} {self.ends[1]}: "
            f"{parts}. "
            "Whiskers are 90 % intervals."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn."""
        excess = self.measured_seconds - self.expected_seconds
        causes = [(words(drop.cause), _of(drop.seconds), _share(drop.seconds.value, excess)) for drop in self.drops]
        expected, measured = seconds(self.expected_seconds), seconds(self.measured_seconds)
        rows = ((self.ends[0], expected, ""), *causes, (self.ends[1], measured, ""))
        return Table(("cause", "time [90 % interval]", "share of the difference"), rows)

    def draw(self) -> Figure:
        """The figure for plotly.js."""
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
        intervals, colours = [drop.seconds for drop in self.drops], [_colour(drop) for drop in self.drops]
        shapes = ("/" if drop.cause == UNEXPLAINED else "" for drop in self.drops)
        return {
            "orientation": "h",
            "y": list(range(1, len(self.drops) + 1)),
            "base": [drop.start / scale for drop in self.drops],
            "x": [interval.value / scale for interval in intervals],
            "marker": {
                "color": colours,
                # Over the colour, plotly.js would look for a contrast to all colours at once, and say that it has none.
                "pattern": hatched(*shapes) | {"fillmode": "replace", "bgcolor": colours},
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

    def _connect(self, figure: Figure, scale: float) -> None:
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
        return [_tick(self.ends[0], expected), *causes, _tick(self.ends[1], measured)]


def waterfall(explanation: Explanation) -> Waterfall:
    """The waterfall of an explanation; causes from the largest to the smallest, unexplained last.

    Raises: InvalidInputError when the explanation abstains, or does not add up.
    """
    expected, measured = explanation.expected_seconds, explanation.measured_seconds
    if expected is None or measured is None or explanation.unexplained is None:
        raise InvalidInputError(f"explanation of run {explanation.run_id!r} has no numbers: {explanation.verdict}")
    parts = _parts(explanation.shares, explanation.unexplained)
    main = UNEXPLAINED if explanation.cause == UNKNOWN else explanation.cause
    drops = _drops(f"explanation of run {explanation.run_id!r}", (expected, measured), parts, main)
    return Waterfall(expected, measured, drops)


def waterfall_between(comparison: Comparison, slower: str, faster: str) -> Waterfall:
    """The waterfall from the faster to the slower of two runs, by these names. Raises: InvalidInputError."""
    more = comparison.more_steps_seconds
    parts = _parts(comparison.shares, comparison.unexplained)
    if more:
        parts.insert(0, (MORE_STEPS if more > 0 else "fewer_steps", Interval(more, more, more)))
    first, last = comparison.faster_seconds, comparison.slower_seconds
    largest = max(parts, key=lambda part: part[1].value)[0]
    main = largest if largest == MORE_STEPS or differs(comparison) else None
    of = f"comparison of runs {comparison.slower!r} and {comparison.faster!r}"
    drops = _drops(of, (first, last), parts, main)
    return Waterfall(first, last, drops, (faster, slower), f"between {faster} and {slower}")


def _parts(shares: Sequence[CauseShare], unexplained: Interval) -> list[tuple[str, Interval]]:
    largest_first = sorted(shares, key=lambda share: -abs(share.seconds.value))
    return [*((share.cause, share.seconds) for share in largest_first), (UNEXPLAINED, unexplained)]


def _drops(
    of: str, ends: tuple[float, float], parts: Sequence[tuple[str, Interval]], main: str | None
) -> tuple[Drop, ...]:
    """Return the bars from one time to the other. Raises: InvalidInputError."""
    first, last = ends
    starts = list(accumulate((interval.value for _, interval in parts), initial=first))
    if abs(starts[-1] - last) > 1e-6 * max(abs(last), abs(first), 1e-3):
        raise InvalidInputError(f"{of} sums to {starts[-1]} s, expected {last} s")
    return tuple(
        Drop(cause, start, interval, cause == main) for (cause, interval), start in zip(parts, starts[:-1], strict=True)
    )


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
