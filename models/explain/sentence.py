"""The sentence of an explanation."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.schema.answers.explanations import Verdict
from crosswind.data.schema.words import opening, words
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.causes.cause import milliseconds
from crosswind.models.explain.cohort.columns import OF_ALL_RANKS
from crosswind.models.explain.significance import Finding
from crosswind.models.explain.split import Split

MORE_STEPS = 1.05  # times the usual number, above which they are worth a sentence
ALL = 1.1  # of an excess, which is as much as all of it: something else went a little quicker


def sentence(
    parts: Split, named: Sequence[Finding], *, verdict: Verdict, culprit: int | None, ranks: Sequence[int]
) -> str:
    """Return how slow a run was and its causes; `culprit`: the first one's rank, if any; `ranks`: of the rows."""
    ratios = 1 + np.quantile(parts.replicates["excess"], (0.05, 0.95)) / parts.expected_time
    low, high = np.maximum(ratios, 0.0)  # where a cohort's runs differ by more than all of their time
    times = f"{1 + parts.excess / parts.expected_time:.3g}x the expected step time [{low:.3g}-{high:.3g}]"
    if verdict is Verdict.NORMAL:
        return f"Not slow: {times}, within what this cohort usually shows."
    if verdict is Verdict.PERHAPS_SLOW:
        times = f"{times}, as runs of this cohort are at times by themselves"
    slow = "Perhaps slow" if verdict is Verdict.PERHAPS_SLOW else "Slow" if parts.excess > 0 else "Slow for its pace"
    if not named:
        return f"{slow}: {times}; no cause has enough evidence."
    first, *others = named
    place = "" if culprit is None else f" on rank {culprit}"
    text = f"{slow}: {times}. {opening(first.cause)}{place} {_cost(first, parts)}."
    further = [f"{words(finding.cause)}{_on(finding, ranks)} {_cost(finding, parts)}" for finding in others]
    return f"{text} Also: {'; '.join(further)}." if further else text


def more_steps(steps: int, usual: int | None, seconds: float) -> str:
    """Return a sentence about a run that made more steps than is usual, of so many seconds; else an empty text."""
    if usual is None or steps <= MORE_STEPS * usual:
        return ""
    return f" It made {steps} steps where {usual} are usual: {(steps - usual) * seconds:.3g} s of its time."


def is_of_a_rank(cause: str, parts: Split) -> bool:
    """Return whether the cause is on one rank; none of those that keep the collectives is the last rank's."""
    columns = BY_NAME[cause].columns
    own = [name for name in columns if name not in OF_ALL_RANKS]
    return "fabric" not in columns and any(parts.measured[name] > parts.expected[name] for name in own)


def _on(finding: Finding, ranks: Sequence[int]) -> str:
    return "" if finding.rank is None else f" on rank {ranks[finding.rank]}"


def _cost(finding: Finding, parts: Split) -> str:
    if finding.rank is not None:
        return f"costs it {milliseconds(finding.seconds)} a step more than the others"
    if 0 < finding.seconds <= ALL * parts.excess:
        return f"took {min(finding.seconds / parts.excess, 1):.0%} of the excess"
    return f"cost {milliseconds(finding.seconds)} a step, while other things went quicker than usual"
