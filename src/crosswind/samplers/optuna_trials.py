"""A study that Optuna keeps, in the terms of our search."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, distribution_to_json

from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.data.schema.trial import MAXIMISE, Configuration, Parameter, Study, Trial, TrialRecord, TrialState
from crosswind.ingest.readers.searches.optuna_distribution import Distribution, distribution_of, domain_of
from crosswind.models.tuner.space.space import Space
from crosswind.samplers.optuna_conditions import Distributions, agreed, conditions_of

SUGGESTED = "crosswind:suggested"  # system attribute of a trial: the values that were suggested together
CONSTRAINTS = "constraints"  # system attributes: one of all constraints until Optuna 4, then one each
OBJECTIVES_MAX = 4
MAXIMIZE = optuna.study.StudyDirection.MAXIMIZE
STATES: Mapping[str, TrialState] = {
    "COMPLETE": TrialState.DONE,
    "PRUNED": TrialState.PRUNED,
    "FAIL": TrialState.FAILED,
    "RUNNING": TrialState.LEASED,
    "WAITING": TrialState.WAITING,
}


@dataclass(frozen=True)
class SharedParameter:
    """One parameter as Optuna has it, and as we do."""

    theirs: BaseDistribution
    ours: Distribution

    @classmethod
    def of(cls, theirs: BaseDistribution) -> Self:
        """Return the parameter of Optuna's distribution. Raises: MalformedError for bounds that we cannot store."""
        return cls(theirs, distribution_of(distribution_to_json(theirs)))

    @property
    def domain(self) -> dict[str, object]:
        """The domain as JSON values."""
        return dict(domain_of([self.ours]))

    def inward(self, value: object) -> Parameter:
        """Return a value of Optuna's as ours. Raises: MalformedError for one that the distribution does not have."""
        try:
            return self.ours.external(self.theirs.to_internal_repr(value))
        except ValueError as error:
            raise MalformedError(f"value {value!r:.80} is not of the distribution") from error

    def outward(self, value: Parameter) -> Any:
        """Return a value of ours as Optuna's."""
        if isinstance(self.theirs, CategoricalDistribution):
            return self.theirs.choices[(self.ours.choices or ()).index(value)]
        number = float(value)
        if self.theirs.step is not None and not self.ours.step_count:  # too many steps to be a list of values
            steps = round((number - self.theirs.low) / self.theirs.step)
            number = min(self.theirs.low + steps * self.theirs.step, self.theirs.high)
        return round(number) if self.ours.is_whole else number


class ShownStudy:
    """A study of Optuna at one moment, as one trial sees it.

    Args:
        theirs: The study.
        number: The number of the trial that is to be chosen.
        space: Distributions to start from, while no trial is complete.
    """

    def __init__(self, theirs: "optuna.Study", number: int, space: Distributions) -> None:
        self._theirs = theirs
        self._number = number
        self._signs = _signs(theirs)
        self._complete = [trial for trial in theirs.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]
        self._bounds = sorted({name for trial in self._complete for name in _constraints(trial.system_attrs)})
        self._kinds = agreed([trial.distributions for trial in self._complete] or [space])
        self._shared = {name: SharedParameter.of(kind) for name, kind in self._kinds.items()}

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The parameters that are suggested together: those of every complete trial, and those under a condition."""
        return {name: kind for name, kind in self._kinds.items() if name in self._always or name in self._conditions}

    def study(self, seed: int) -> Study:
        """Return the study in our terms. Raises: InvalidInputError for more than four objectives."""
        if len(self._signs) > OBJECTIVES_MAX:
            raise InvalidInputError(f"the study has {len(self._signs)} objectives, expected at most {OBJECTIVES_MAX}")
        words = [f"{MAXIMISE if sign < 0 else 'minimise'} value_{place}" for place, sign in enumerate(self._signs)]
        return Study(
            study_id=str(self._theirs._study_id),
            name=self._theirs.study_name,
            space=self._space.as_json(),
            objective="value_0",
            unit="",
            seed=seed,
            created_ns=0,
            direction=MAXIMISE if self._signs[0] < 0 else None,
            objectives=tuple(words) if len(words) > 1 else (),
            limits=tuple(f"bound_{place} <= 0" for place in range(len(self._bounds))),
        )

    def records(self) -> tuple[list[TrialRecord], int]:
        """Return the other trials with a configuration of the space by now, and how many that began before have none.

        Those choose at this moment, too.
        """
        others = [trial for trial in self._theirs.get_trials(deepcopy=False) if trial.number != self._number]
        before = [trial for trial in others if trial.state.name == "RUNNING" and trial.number < self._number]
        records = [record for trial in others if (record := self._record(trial))]
        return records, sum(not _values(trial) for trial in before)

    def outward(self, configuration: Configuration) -> dict[str, Any]:
        """Return a configuration of ours as Optuna has it."""
        return {name: self._shared[name].outward(value) for name, value in configuration.items()}

    @cached_property
    def _always(self) -> frozenset[str]:
        return frozenset(name for name in self._kinds if all(name in trial.params for trial in self._complete))

    @cached_property
    def _conditions(self) -> dict[str, str]:
        return conditions_of(self._kinds, [self._inward(trial.params) for trial in self._complete])

    @cached_property
    def _space(self) -> Space:
        conditions = {name: {"when": text} for name, text in self._conditions.items()}
        return Space.from_json(
            {name: self._shared[name].domain | conditions.get(name, {}) for name in self.distributions}
        )

    def _inward(self, values: Mapping[str, Any]) -> dict[str, Parameter]:
        return {name: shared.inward(values[name]) for name, shared in self._shared.items() if name in values}

    def _record(self, trial: "optuna.trial.FrozenTrial") -> TrialRecord | None:
        try:
            values = self._inward(_values(trial))
        except MalformedError:
            return None
        configuration = {name: value for name, value in values.items() if name in self.distributions}
        if not self._space.contains(configuration):
            return None
        state, objectives = _outcome(trial, self._signs)
        outcomes = {f"value_{place}": value for place, value in enumerate(trial.values or ()) if objectives}
        constraints = _constraints(trial.system_attrs)
        outcomes |= {
            f"bound_{place}": constraints[name] for place, name in enumerate(self._bounds) if name in constraints
        }
        ours = Trial(configuration, state, objectives[0] if objectives else None, str(trial.number))
        return TrialRecord(ours, str(self._theirs._study_id), outcomes=outcomes)


def trials_of(study: "optuna.Study") -> list[Trial]:
    """Return the trials of a study with all of their parameters. Raises: InvalidInputError for several objectives."""
    signs = _signs(study)
    if len(signs) > 1:
        raise InvalidInputError(f"study {study.study_name} has {len(signs)} objectives, expected one")
    trials = []
    for trial in study.get_trials(deepcopy=False):
        shared = {name: SharedParameter.of(kind) for name, kind in trial.distributions.items()}
        state, objectives = _outcome(trial, signs)
        if objectives and any(bound > 0 for bound in _constraints(trial.system_attrs).values()):
            state, objectives = TrialState.INFEASIBLE, []
        configuration = {name: parameter.inward(trial.params[name]) for name, parameter in shared.items()}
        trials.append(Trial(configuration, state, objectives[0] if objectives else None))
    return trials


def is_maximised(study: "optuna.Study") -> bool:
    """Return whether larger is better in the first objective."""
    return _signs(study)[0] < 0


def _signs(study: "optuna.Study") -> list[int]:
    return [-1 if direction == MAXIMIZE else 1 for direction in study.directions]


def _values(trial: "optuna.trial.FrozenTrial") -> dict[str, Any]:
    """Return the values of a trial; of one that has not ended, also those that it is yet to ask for."""
    if trial.state.is_finished():
        return dict(trial.params)
    given: Sequence[dict[str, Any]] = [trial.system_attrs.get(name, {}) for name in (SUGGESTED, "fixed_params")]
    return {**given[0], **given[1], **trial.params}


def _outcome(trial: "optuna.trial.FrozenTrial", signs: list[int]) -> tuple[TrialState, list[float]]:
    """Return the state, and of a complete trial the objectives to make smaller."""
    state = STATES[trial.state.name]
    if state is not TrialState.DONE:
        return state, []
    if not all(map(math.isfinite, trial.values)):
        return TrialState.FAILED, []
    return state, [sign * value for sign, value in zip(signs, trial.values, strict=True)]


def _constraints(attributes: Mapping[str, Any]) -> dict[str, float]:
    """Return the constraints by name, those that are met up to 0."""
    listed = {str(place): value for place, value in enumerate(attributes.get(CONSTRAINTS) or ())}
    single = {name.partition(":")[2]: value for name, value in attributes.items() if name.startswith(f"{CONSTRAINTS}:")}
    return listed | single
