"""The sentence of an explanation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.answers.explanations import UNKNOWN, Interval, StepChange, Verdict
from crosswind.data.schema.words import capital, opening, phase_words, words
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.causes.cause import milliseconds
from crosswind.models.explain.cohort.columns import OF_ALL_RANKS
from crosswind.models.explain.significance import Finding
from crosswind.models.explain.split import Split
from crosswind.models.explain.within.lag import SETTLED, Lag

MORE_STEPS = 1.05  # times the usual number, above which they are worth a sentence
ALL = 1.1  # of an excess, which is as much as all of it: something else went a little quicker
QUICKER = "quicker than this cohort usually is"
BY_ITSELF = "as runs of this cohort are at times by themselves"
OPENED = {
    Verdict.SLOW: "Slow",
    Verdict.PERHAPS_SLOW: "Perhaps slow",
    Verdict.ONE_RANK_DELAYS: "One rank delays it",
}
DELAYED = "One rank delays a run of usual time"
USUAL = 0.1  # of the expected time, up to which an excess is none


@dataclass(frozen=True)
class Place:
    """The ranks that rows are of, the rank of the first cause, and its lag; None where it is of all ranks."""

    ranks: Sequence[int]
    culprit: int | None = None
    lag: Lag | None = None


def sentence(parts: Split, named: Sequence[Finding], *, verdict: Verdict, place: Place) -> str:
    """Return how slow a run was and its causes."""
    times = _times(parts)
    if verdict is Verdict.NORMAL:
        is_quicker = np.quantile(parts.replicates["excess"], 0.95) < 0
        return f"Not slow: {times}, {QUICKER if is_quicker else 'within what this cohort usually shows'}."
    is_usual = parts.excess <= USUAL * parts.expected_time
    if verdict is not Verdict.SLOW and not is_usual:
        times = f"{times}, {BY_ITSELF}"
    opened = f"{DELAYED if verdict is Verdict.ONE_RANK_DELAYS and is_usual else OPENED[verdict]}: {times}"
    if not named:
        return f"{opened}; no cause has enough evidence."
    if place.lag is None:
        return f"{opened}. {causes(parts, named, place)}"
    late = lag_sentence(place.lag, len(place.ranks))
    if verdict is Verdict.ONE_RANK_DELAYS:
        return f"{opened}; {late}"
    return f"{opened}. {causes(parts, named, place)} {capital(late)}"


def causes(parts: Split, named: Sequence[Finding], place: Place) -> str:
    """Return the causes and what they took."""
    first, *others = named
    where = "" if place.culprit is None else f" on rank {place.culprit}"
    if first.phase is not None:
        where = f",{where}, in {phase_words(first.phase)}," if where else f", in {phase_words(first.phase)},"
    maybe = f"; it may be {' or '.join(map(words, first.contenders))}" if first.contenders else ""
    text = f"{opening(first.cause)}{where} {_cost(first, parts)}{maybe}."
    further = [f"{words(finding.cause)}{_on(finding, place.ranks)} {_cost(finding, parts)}" for finding in others]
    return f"{text} Also: {'; '.join(further)}." if further else text


def lag_sentence(lag: Lag, ranks: int) -> str:
    """Return how much later than its peers a rank arrives, and why."""
    whose = "its peer" if ranks == 2 else "the median of its peers"
    when = "before each collective" if lag.late_ratio >= SETTLED else f"before {lag.late_ratio:.0%} of the collectives"
    since = "" if lag.since_step is None else f" since step {lag.since_step}"
    late = f"rank {lag.rank} spends {milliseconds(lag.late_seconds)} more than {whose} {when}{since}"
    if lag.cause == UNKNOWN:
        return (
            f"{late}; it may be {' or '.join(map(words, lag.contenders))}."
            if lag.contenders
            else f"{late}; no counter says why."
        )
    share = lag.parts.shares[lag.cause] / lag.cost
    return f"{late}; {words(lag.cause)} took {min(share, 1):.0%} of that."


def change_sentence(change: StepChange) -> str:
    """Return since when a run's steps take longer than before."""
    until = "" if change.last_step is None else f" to {change.last_step}"
    since, before = milliseconds(change.since_seconds), milliseconds(change.before_seconds)
    ratio = change.since_seconds / change.before_seconds
    return f"since step {change.first_step}{until} a step takes {since}, {before} before ({ratio:.3g}x)"


def formula_words(formulas: Interval, time: float) -> str:
    """Return what formulas expect of a step, and what it took."""
    band = f"{milliseconds(formulas.value)} [{milliseconds(formulas.low)} to {milliseconds(formulas.high)}]"
    return f"formulas expect {band} a step, it took {milliseconds(time)}"


def more_steps(steps: int, usual: int | None, seconds: float) -> str:
    """Return a sentence about a run that made more steps than is usual, of so many seconds; else an empty text."""
    if usual is None or steps <= MORE_STEPS * usual:
        return ""
    return f" It made {steps} steps where {usual} are usual: {(steps - usual) * seconds:.3g} s of its time."


def is_of_a_rank(cause: str, parts: Split) -> bool:
    """Return whether the cause is on one rank; none of those that keep the collectives is the last rank's."""
    if cause == UNKNOWN:
        return False
    columns = BY_NAME[cause].columns
    own = [name for name in columns if name not in OF_ALL_RANKS]
    return "fabric" not in columns and any(parts.measured[name] > parts.expected[name] for name in own)


def _times(parts: Split) -> str:
    ratios = 1 + np.quantile(parts.replicates["excess"], (0.05, 0.95)) / parts.expected_time
    low, high = np.maximum(ratios, 0.0)  # where a cohort's runs differ by more than all of their time
    return f"{1 + parts.excess / parts.expected_time:.3g}x the expected step time [{low:.3g}-{high:.3g}]"


def _on(finding: Finding, ranks: Sequence[int]) -> str:
    return "" if finding.rank is None else f" on rank {ranks[finding.rank]}"


def _cost(finding: Finding, parts: Split) -> str:
    if finding.rank is not None:
        return f"costs it {milliseconds(finding.seconds)} a step more than the others"
    if 0 < finding.seconds <= ALL * parts.excess:
        return f"took {min(finding.seconds / parts.excess, 1):.0%} of the excess"
    return f"cost {milliseconds(finding.seconds)} a step, while other things went quicker than usual"
