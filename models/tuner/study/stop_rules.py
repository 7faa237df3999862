"""Rules that end a trial early, by the intermediate values that it and the study's other trials have reported.

`median`: a trial ends once its best value so far is worse than the median of what complete trials had reported at the
same step. Source: Golovin et al. 2017, "Google Vizier", section 3.2; as in Optuna's MedianPruner, the first five
complete trials run to their end.

`asha`: steps 1, 3, 9, 27 ... are rungs. A trial that reaches one goes on if it is among the best third of all that
have been there, and always if it is the best. Source: Li et al. 2020, "A system for massively parallel hyperparameter
tuning"; nothing waits for others, and what was stopped is not resumed.

`hyperband`: the same in three brackets, in which the first rung is step 1, 3 or 9: a third of the trials has time to
show a late gain. Source: Li et al. 2018, "Hyperband". The bracket follows from the trial's id.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Self
from zlib import crc32

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.report import Report
from crosswind.data.schema.trial import Study

NONE, MEDIAN = "none", "median"
FEWEST = 5  # complete trials, before which the median stops nothing
REDUCTION = 3  # of the trials on a rung, one goes on
BRACKETS = 3


@dataclass(frozen=True)
class Progress:
    """A running trial's reports, lower is better.

    Args:
        trial_id: Of the trial.
        reports: All that it has reported, in the order of their steps.
        first_new: The first step of the newest batch.
        is_maximised: Whether the study's readers see the values negated.
    """

    trial_id: str
    reports: Sequence[Report]
    first_new: int
    is_maximised: bool = False

    @classmethod
    def of(cls, study: Study, trial_id: str, reports: Sequence[Report], new: Sequence[Report]) -> Self:
        """Return the progress of a study's trial with all its reports, of which these are the newest batch."""
        return cls(trial_id, reports, min(report.step for report in new), study.is_maximised)

    def words(self, value: float) -> str:
        """Return the value as the study's readers see it."""
        return f"{-value if self.is_maximised else value:.6g}"


@dataclass(frozen=True)
class Peer:
    """Another trial at the step in question: the value that it reported there, and whether it ran to its end."""

    trial_id: str
    value: float
    is_complete: bool


@dataclass(frozen=True)
class StopRule:
    """A rule in two parts.

    Args:
        step: Returns the step at which the other trials are looked at, None to go on anyway.
        verdict: Returns in words why to stop at that step, empty to go on.
    """

    step: Callable[[Progress], int | None]
    verdict: Callable[[Progress, int, Sequence[Peer]], str]


def rule_named(name: str | None) -> StopRule | None:
    """Return the rule of this name, None for `none`; by default `median`. Raises: InvalidInputError."""
    wanted = name or MEDIAN
    if wanted == NONE:
        return None
    if wanted not in RULES:
        raise InvalidInputError(f"stop_early is {wanted!r:.80}, expected {', '.join((*RULES, NONE))}")
    return RULES[wanted]


def reason_to_stop(name: str | None, progress: Progress, peers_at: Callable[[int], Sequence[Peer]]) -> str:
    """Return in words why a trial should stop, empty to go on; `peers_at` looks up other trials, once at most."""
    rule = rule_named(name)
    step = rule.step(progress) if rule and progress.reports else None
    return rule.verdict(progress, step, peers_at(step)) if rule and step is not None else ""


def _last_step(progress: Progress) -> int | None:
    last = progress.reports[-1].step
    return last if last >= progress.first_new else None


def _median(progress: Progress, step: int, peers: Sequence[Peer]) -> str:
    complete = [peer.value for peer in peers if peer.is_complete]
    best = min(report.value for report in progress.reports)
    if len(complete) < FEWEST or best <= (middle := median(complete)):
        return ""
    words = f"the best value so far, {progress.words(best)}, is behind {progress.words(middle)}"
    return f"at step {step} {words}, the median of {len(complete)} trials"


def _rung(progress: Progress, first_rung: int) -> int | None:
    """Return the step of the report that reached the highest rung, None where none of the newest batch did."""
    rung, reached = first_rung, None
    for report in progress.reports:
        if report.step >= rung:
            reached = report.step
        while rung <= report.step:  # of the rungs that one report skips, the highest counts
            rung *= REDUCTION
    return reached if reached is not None and reached >= progress.first_new else None


def _third(progress: Progress, step: int, peers: Sequence[Peer]) -> str:
    own = next(report.value for report in progress.reports if report.step == step)
    values = sorted([own, *(peer.value for peer in peers)])
    cut = values[max(len(values) // REDUCTION, 1) - 1]
    if own <= cut:
        return ""
    words = f"its value, {progress.words(own)}, is not among the best third of {len(values)} trials"
    return f"at step {step} {words}, which ends with {progress.words(cut)}"


def _bracket(trial_id: str) -> int:
    return crc32(trial_id.encode()) % BRACKETS


def _third_of_bracket(progress: Progress, step: int, peers: Sequence[Peer]) -> str:
    bracket = _bracket(progress.trial_id)
    return _third(progress, step, [peer for peer in peers if _bracket(peer.trial_id) == bracket])


RULES: Mapping[str, StopRule] = MappingProxyType(
    {
        MEDIAN: StopRule(_last_step, _median),
        "asha": StopRule(lambda progress: _rung(progress, 1), _third),
        "hyperband": StopRule(
            lambda progress: _rung(progress, REDUCTION ** _bracket(progress.trial_id)), _third_of_bracket
        ),
    }
)
