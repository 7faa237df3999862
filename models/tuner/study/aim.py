"""The aim of a study, as its details say: several objectives, limits on outcomes, hours, and repeats."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Parameter, Study, TrialRecord
from crosswind.models.tuner.study.front import on_front
from crosswind.models.tuner.study.goal import Goal, Judgement
from crosswind.models.tuner.study.hours import ends_ns, number_told

DIRECTION, MAXIMISE = "direction", "maximise"
OBJECTIVES, LIMITS, REPEATS = "objectives", "limits", "repeats"  # words of a study's `details`
REPEATS_MAX = 0.5


@dataclass(frozen=True)
class Aim:
    """The measure of a study's trials: `goal` is None where the smallest objective is all that is sought.

    `is_maximised` tells whether the objective is kept negated; `ends_ns` is when the hours since the study's creation
    are over, None without a limit. `repeats` is the share of the trials that may measure a close rival again.
    """

    objective: str
    is_maximised: bool
    goal: Goal | None
    ends_ns: int | None
    repeats: float

    @classmethod
    def of(cls, study: Study) -> Self:
        """The aim of a study. Raises: InvalidInputError that names the word of `details`, value and expectation."""
        is_maximised = study.details.get(DIRECTION) == MAXIMISE
        own = f"{MAXIMISE if is_maximised else 'minimise'} {study.objective}"
        objectives, limits = _texts(study, OBJECTIVES), _texts(study, LIMITS)
        goal = Goal.parse(objectives or (own,), limits) if objectives or limits else None
        if goal and objectives and goal.objectives[0].text != own:
            raise InvalidInputError(
                f"details: the first of {OBJECTIVES} is {objectives[0]!r}, expected the study's own, {own!r}"
            )
        repeats = number_told(study, REPEATS, REPEATS_MAX)
        if goal and repeats is not None:
            raise InvalidInputError(
                f"details: {REPEATS} is {repeats!r}, expected none beside limits or several objectives"
            )
        return cls(study.objective, is_maximised, goal, ends_ns(study), repeats or 0.0)

    def is_over(self, now_ns: int) -> bool:
        """Return whether the hours are over."""
        return self.ends_ns is not None and now_ns >= self.ends_ns

    def judge(self, record: TrialRecord) -> Judgement | None:
        """Return what a complete trial comes to; None where its outcomes do not tell every objective and limit."""
        measured = record.trial.objective
        if measured is None:
            return None
        if self.goal is None:
            return Judgement((measured,), ())
        named: dict[str, Parameter] = {self.objective: -measured if self.is_maximised else measured}
        values = {**record.trial.configuration, **named, **record.outcomes}
        try:
            others = tuple(objective.value(values) for objective in self.goal.objectives[1:])
            return Judgement((measured, *others), tuple(limit.sides(values) for limit in self.goal.limits))
        except InvalidInputError:
            return None

    def ranked(self, records: Sequence[TrialRecord]) -> "Ranked":
        """Return which trials are the best so far."""
        done = [record for record in records if record.trial.objective is not None]
        judged = [(record, judgement) for record in done if (judgement := self.judge(record))]
        kept = [(record, judgement.objectives) for record, judgement in judged if judgement.keeps_limits]
        kept.sort(key=lambda pair: pair[1])  # stable: of equals the earliest
        front = on_front(np.array([values for _, values in kept])) if kept and len(kept[0][1]) > 1 else [True]
        best = tuple(record for (record, _), is_on in zip(kept, front, strict=False) if is_on)
        return Ranked(best, len(judged) - len(kept), len(done) - len(judged))


@dataclass(frozen=True)
class Ranked:
    """The trials that keep the limits and that no other beats in every objective, by the first objective.

    Beside them how many complete trials exceed a limit, and of how many the outcomes do not tell.
    """

    front: tuple[TrialRecord, ...]
    outside: int
    unjudged: int


def _texts(study: Study, word: str) -> tuple[str, ...]:
    value = study.details.get(word) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise InvalidInputError(f"details: {word} is {value!r:.80}, expected a list of texts")
    return tuple(value)
