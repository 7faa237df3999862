"""Steps of series: as fine as there are points, at round numbers of seconds."""

from dataclasses import dataclass

from crosswind.data.lake.parts import Span
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.series_question import BUCKETS_MAX, SeriesQuestion

SECOND_NS = 1_000_000_000
BELOW_A_MINUTE = tuple(digit * int(10**power) for power in range(3, 10) for digit in (1, 2, 5))
ROUND_NS = (*BELOW_A_MINUTE, *(seconds * SECOND_NS for seconds in (10, 15, 30, 60, 120, 300, 600, 900, 1800)))
ON_TIME = 0.98  # samples at 10 s come 10.1 s apart on average when one was late
HOURS = (1, 2, 3, 6, 12, 24, 48, 168)
HOUR_NS = 3600 * SECOND_NS


@dataclass(frozen=True)
class Steps:
    """Equal steps that cover a time: `count` of `width_ns`, the first at a multiple of that."""

    begin_ns: int
    width_ns: int
    count: int

    @property
    def end_ns(self) -> int:
        """The end of the last one."""
        return self.begin_ns + self.count * self.width_ns


def steps_of(question: SeriesQuestion, span: Span, apart_ns: int) -> Steps:
    """Return the steps of a question; unless it names one, none is shorter than samples are apart.

    Raises: InvalidInputError for too many.
    """
    if question.step_seconds is None:
        return _covering(span, _round_width(max(-(-(span[1] - span[0]) // question.points), round(apart_ns * ON_TIME))))
    steps = _covering(span, max(1, round(question.step_seconds * SECOND_NS)))
    if steps.count > BUCKETS_MAX:
        raise InvalidInputError(
            f"step {question.step_seconds:g} s: {steps.count} steps from {span[0]} to {span[1]} (ns UTC), "
            f"expected {BUCKETS_MAX} at most"
        )
    return steps


def coarse_seconds(question: SeriesQuestion, span: Span) -> int | None:
    """Return the seconds of the shortest step that the answer may have; None where these are not whole."""
    width = _round_width(-(-(span[1] - span[0]) // question.points))
    if question.step_seconds is not None:
        width = round(question.step_seconds * SECOND_NS)
    return None if width % SECOND_NS or not width else width // SECOND_NS


def _covering(span: Span, width_ns: int) -> Steps:
    begin_ns = span[0] // width_ns * width_ns
    return Steps(begin_ns, width_ns, -(-(span[1] - begin_ns) // width_ns))


def _round_width(least_ns: int) -> int:
    """Return the smallest round width that is no smaller."""
    widths = (*ROUND_NS, *(hours * HOUR_NS for hours in HOURS))
    week = widths[-1]
    return next((width for width in widths if width >= least_ns), -(-least_ns // week) * week)
