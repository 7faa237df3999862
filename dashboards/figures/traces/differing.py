"""The way from another run's mean step to that of a traced run, kind by kind."""

from itertools import accumulate

from crosswind.dashboards.difference_wording import KINDS, UNEXPLAINED
from crosswind.dashboards.figures.traces.pop import NAME_LENGTH
from crosswind.dashboards.figures.waterfall import Drop, Waterfall
from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.answers.trace_difference import RunsDifference


def waterfall_from(answer: RunsDifference, other: str) -> Waterfall | None:
    """Return the waterfall from the other run, the first of the two; None where no interval can be had."""
    kinds = [(KINDS[kind.kind], kind.seconds) for kind in answer.kinds if kind.seconds.value]
    parts = [*sorted(kinds, key=lambda kind: -abs(kind[1].value)), (UNEXPLAINED, answer.unexplained)]
    if not all(interval.low <= interval.high for _, interval in (*parts, ("", answer.seconds))):
        return None
    begin = answer.first.step_seconds
    starts = accumulate((interval.value for _, interval in parts), initial=begin)
    main = _main(parts) if answer.seconds.low > 0 else None
    drops = tuple(
        Drop(name, start, interval, name == main) for start, (name, interval) in zip(starts, parts, strict=False)
    )
    ends = f"a step of run {other[-NAME_LENGTH:]}", "a step of this run"
    return Waterfall(begin, answer.second.step_seconds, drops, ends, "more a step")


def _main(parts: list[tuple[str, Interval]]) -> str:
    """Return what made the step longer."""
    return max(parts, key=lambda part: part[1].value)[0]
