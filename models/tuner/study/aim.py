"""The aim of a study: which of its trials are best, with several objectives and limits on outcomes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import MAXIMISE, Parameter, Study, TrialRecord
from crosswind.models.tuner.study.goal import Goal, Judgement


@dataclass(frozen=True)
class Aim:
    """The measure of a study's trials; `goal` is None where nothing counts but the smallest objective."""

    study: Study
    goal: Goal | None

    @classmethod
    def of(cls, study: Study) -> Self:
        """Return the aim of a study. Raises: InvalidInputError that names the study's field, value and expectation."""
        own = f"{MAXIMISE if study.is_maximised else 'minimise'} {study.objective}"
        if not study.objectives and not study.limits:
            return cls(study, None)
        goal = Goal.parse(study.objectives or (own,), study.limits)
        if study.objectives and goal.objectives[0].text != own:
            raise InvalidInputError(
                f"the first of objectives is {study.objectives[0]!r}, expected the study's own, {own!r}"
            )
        if study.repeats is not None:
            raise InvalidInputError(f"repeats is {study.repeats!r}, expected none beside limits or several objectives")
        return cls(study, goal)

    def judge(self, record: TrialRecord) -> Judgement | None:
        """Return the objectives and limits of a complete trial; None where its outcomes do not give them all."""
        measured = record.trial.objective
        if measured is None:
            return None
        if self.goal is None:
            return Judgement((measured,), ())
        own: dict[str, Parameter] = {self.study.objective: self.study.signed(measured)}
        values = {**record.trial.configuration, **own, **record.outcomes}
        try:
            others = tuple(objective.value(values) for objective in self.goal.objectives[1:])
            return Judgement((measured, *others), tuple(limit.sides(values) for limit in self.goal.limits))
        except InvalidInputError:
            return None

    def ranked(self, records: Sequence[TrialRecord]) -> "Ranked":
        """Return the best trials so far."""
        done = [record for record in records if record.trial.objective is not None]
        judged = [(record, judgement) for record in done if (judgement := self.judge(record))]
        within = [(record, judgement.objectives) for record, judgement in judged if judgement.keeps_limits]
        within.sort(key=lambda pair: pair[1])  # stable: of equals the earliest
        front = _on_front([values for _, values in within]) if within and len(within[0][1]) > 1 else [True]
        best = tuple(record for (record, _), is_on in zip(within, front, strict=False) if is_on)
        return Ranked(best, len(judged) - len(within), len(done) - len(judged))


def _on_front(values: Sequence[tuple[float, ...]]) -> Sequence[bool]:
    import numpy as np  # noqa: PLC0415 - a fifth of what a look at a study of one objective takes

    from crosswind.models.tuner.study.front import on_front  # noqa: PLC0415

    return [bool(is_on) for is_on in on_front(np.array(values))]


@dataclass(frozen=True)
class Ranked:
    """The Pareto front of the trials within the limits, sorted by the first objective; with one objective the best.

    `outside` complete trials exceed a limit; the outcomes of `unjudged` ones do not give every objective and limit.
    """

    front: tuple[TrialRecord, ...]
    outside: int
    unjudged: int
