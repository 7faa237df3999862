"""The rules of a verdict, all in one place.

- *Slow* is slower than expected: by 2 % at least, with an interval of the excess above zero, and either a cause stands
  out or the excess is a tenth and more than runs of the cohort differ by. No run that took less than expected is slow.
- *One rank delays*: the run is not surely slower than expected, or nothing is expected of it, and yet one rank costs a
  tenth of a step, against ranks of the cohort's runs or against its own peers.
- *Perhaps slow*: longer than expected, as runs of its cohort are at times by themselves.
- The cause named first is the one with the largest share. Where more of the excess is unexplained it is UNKNOWN, and
  the causes that stand out come after it.
- When the evidence is drawn again, that cause must still be the largest in a fifth of the redraws, and in at least as
  many as leave most unexplained. Else it is UNKNOWN in that place, and a run that is perhaps slow has no cause at all.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosswind.data.schema.answers.explanations import UNKNOWN, Verdict
from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.certainty import contenders, settled
from crosswind.models.explain.cohort.reference import TIME, Reference
from crosswind.models.explain.evidence.step_columns import COMMUNICATION, FABRIC, PHASES
from crosswind.models.explain.significance import ComparedShares, Finding, findings_of, student_spreads
from crosswind.models.explain.split import UNEXPLAINED, Split
from crosswind.models.explain.within.lag import Lag

SMALLEST_EXCESS = 0.02  # excess / expected, below which no cause that is significant in its cohort makes a run slow
SMALLEST_SLOWDOWN = 0.10  # of the expected time: of a run's excess without a cause, of the lag of one of its ranks
SPREADS = 3.0  # an excess within so many of the cohort's own robust standard deviations is its usual variability
NEXT_TO_NOTHING = 0.02  # of the excess, below which a cause is not even named after the first
FIRST = 0.1  # of the excess, below which no cause is worth a word
SAME = 0.5  # of a lag or of an unexplained excess, from which on the one accounts for the other
UNKNOWN_PHASE = "compute"  # of what is unexplained: all other phases have a cause that claims what is left of them
SURELY = 0.05  # of the replicates, which an excess above zero may leave out


def judged(
    parts: Split, compared: ComparedShares, ranks: ComparedShares | None, *, lag: Lag | None, is_usual_lag: bool
) -> tuple[Verdict, list[Finding]]:
    """Return the verdict on a run against its cohort and on its ranks, and the causes, the first one first.

    `is_usual_lag`: most of the cohort's runs have the same lag.
    """
    findings = findings_of(compared, ranks, parts.expected_time)
    is_more = parts.excess > SMALLEST_EXCESS * parts.expected_time
    is_surely_more = is_more and low(parts.replicates["excess"]) > 0
    if is_surely_more and (findings or _is_significant(parts, compared.reference)):
        return Verdict.SLOW, _with_unknown(parts, _largest_first(parts, findings))
    worth = [finding for finding in findings if _is_worth_it(finding, parts, is_more=is_more)]
    is_long = parts.excess > SMALLEST_SLOWDOWN * parts.expected_time
    named = _with_lag(worth, lag, is_usual=is_usual_lag, is_long=is_long)
    if named and named[0].rank is not None:
        return Verdict.ONE_RANK_DELAYS, named
    if named or is_long:
        return Verdict.PERHAPS_SLOW, named or _largest_first(parts, [])
    return Verdict.NORMAL, []


def agreed(verdict: Verdict, named: Sequence[Finding], redrawn: Split) -> list[Finding]:
    """Return the findings, the first of them only where redraws of its evidence agree.

    Else UNKNOWN comes first, or nothing is named where the run is perhaps slow.
    """
    first = named[0].cause
    if first == UNKNOWN or settled(first, redrawn) == first:
        return list(named)
    if verdict is Verdict.PERHAPS_SLOW:
        return []
    unknown = _unknown(named[0], redrawn)
    return [unknown, *(finding for finding in named if finding.cause not in unknown.contenders)]


def first_of(parts: Split) -> Finding:
    """Return the largest cause, or UNKNOWN where more is unexplained or redraws disagree."""
    return agreed(Verdict.SLOW, _with_unknown(parts, _largest_first(parts, [])), parts)[0]


def low(replicates: Floats) -> float:
    """Return the lower end of the 90 % interval."""
    return float(np.quantile(replicates, SURELY))


def in_phase_of(lag: Lag | None, finding: Finding) -> Finding:
    """Return the finding; an unknown one in the phase of the lag that is behind it."""
    return finding if lag is None or finding.cause != UNKNOWN else replace(finding, phase=lag.phase)


def is_behind_it(lag: Lag, unexplained: float) -> bool:
    """Return whether a rank's lag, which no counter explains, accounts for an unexplained excess, seconds a segment."""
    return lag.cause == UNKNOWN and lag.cost >= SAME * unexplained


def _unknown(first: Finding, redrawn: Split) -> Finding:
    """Return what takes the place of a finding: what is unexplained there, or the phase for which causes contend."""
    maybe = contenders(first.cause, redrawn)
    if not maybe:
        return Finding(UNKNOWN, redrawn.shares[UNEXPLAINED], first.rank, UNKNOWN_PHASE)
    beyond = {phase: redrawn.measured[phase] - redrawn.expected[phase] for phase in PHASES}
    phase = max(beyond, key=lambda name: beyond[name])
    return Finding(UNKNOWN, beyond[phase], first.rank, COMMUNICATION if phase == FABRIC else phase, maybe)


def _is_significant(parts: Split, reference: Reference) -> bool:
    usual = student_spreads(reference.runs, SPREADS) * reference.spread[TIME]
    return parts.excess > max(SMALLEST_SLOWDOWN * parts.expected_time, usual)


def _largest_first(parts: Split, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings after the largest share, where that is larger than the unexplained part."""
    if parts.largest == UNKNOWN:
        return list(findings)
    first = Finding(parts.largest, parts.shares[parts.largest], None)
    return [first, *(finding for finding in findings if finding.cause != first.cause)]


def _with_unknown(parts: Split, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings after UNKNOWN, where more of the excess is unexplained than the first of them took.

    Those with next to nothing of the excess are left out.
    """
    unexplained = parts.shares[UNEXPLAINED]
    if findings and findings[0].seconds >= unexplained:
        return list(findings)
    worth = [finding for finding in findings if finding.seconds >= NEXT_TO_NOTHING * parts.excess]
    return [Finding(UNKNOWN, unexplained, None, UNKNOWN_PHASE), *worth]


def _is_worth_it(finding: Finding, parts: Split, *, is_more: bool) -> bool:
    """Return whether a finding is worth a word in a run that is not surely slow.

    Of one that took no more than expected it must be a rank's, and cost a tenth of the time.
    """
    if finding.rank is None:
        return is_more and finding.seconds >= FIRST * parts.excess
    return is_more or finding.seconds > SMALLEST_SLOWDOWN * parts.expected_time


def _with_lag(findings: Sequence[Finding], lag: Lag | None, *, is_usual: bool, is_long: bool) -> list[Finding]:
    """Return the findings; before them the lag, where it is news.

    A lag with a cause would be a finding, were it unusual. So only one that is unusual and unknown comes before
    findings of less than half of it, and only an unknown one before the excess of a run that took long.
    """
    has_cause = lag is None or lag.cause != UNKNOWN
    if lag is None or (has_cause and is_long):
        return list(findings)
    if findings and (has_cause or is_usual or findings[0].seconds >= SAME * lag.cost):
        return list(findings)
    return [lag.finding, *(one for one in findings if one.cause != lag.cause)]
