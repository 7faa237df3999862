"""Words of the difference of two runs."""

import math

from crosswind.dashboards.wording import count, estimate, seconds
from crosswind.data.schema.answers.explanations import Interval
from crosswind.data.schema.answers.trace_difference import PartKind, RunsDifference

UNEXPLAINED = "unexplained"
KINDS = {
    PartKind.ADDED: "operators added",
    PartKind.GONE: "operators gone",
    PartKind.SLOWER: "operators slower",
    PartKind.FASTER: "operators faster",
    PartKind.ALIKE: "operators within their variation",
    PartKind.WAIT: "communication, wait",
    PartKind.TRANSFER: "communication, transfer",
    PartKind.MEMORY: "memory copies",
    PartKind.HOST: "host-bound",
    PartKind.IDLE: "idle",
}


def change(interval: Interval) -> str:
    """Return a signed time, with its interval where it has one."""
    if math.isnan(interval.low):
        return f"{'+' if interval.value > 0 else ''}{seconds(interval.value)}"
    return estimate(interval.value, interval.low, interval.high)


def side_words(answer: RunsDifference) -> list[str]:
    """Return a line for each run: its step, and over what it is the mean."""
    return [
        f"{name}: {seconds(side.step_seconds)} a step, mean of {count(side.steps, 'step')} "
        f"on {count(len(side.ranks), 'rank')}"
        for name, side in (("A", answer.first), ("B", answer.second))
    ]


def kind_rows(answer: RunsDifference) -> list[tuple[str, Interval, str]]:
    """Return the kinds and what is unexplained, which sum to the difference: words, time, number of parts."""
    rows = [(KINDS[kind.kind], kind.seconds, str(kind.count)) for kind in answer.kinds]
    return [*rows, (UNEXPLAINED, answer.unexplained, "")]
