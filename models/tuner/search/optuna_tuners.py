"""Searches from libraries, for people who insist: TPE as Optuna has it, and CMA-ES from the library that it uses.

Both ask a library for values and leave it at that: what breaks a constraint or is taken is rejected and asked for
again, and where a library has nothing else to offer, random configurations follow. A search is made anew for every
suggestion from what was observed, so any process gives the same answer.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crosswind.data.schema.trial import Configuration, Parameter, Trial, TrialState
from crosswind.models.tuner.search.observed_trials import ObservedTrials
from crosswind.models.tuner.search.tuner import check_count
from crosswind.models.tuner.search.unit_points import UnitPoints
from crosswind.models.tuner.space.parameter import Domain, FloatDomain, IntDomain, OrdinalDomain
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.searches import check_installed

if TYPE_CHECKING:
    import optuna

TRIES = 50  # of a library for each configuration, before random ones follow
SIGMA = 0.3  # of CMA-ES at first, in the unit cube
TRIALS_MAX = 1000  # newest that are told to TPE: it is asked anew each time


class AskingTuner:
    """A tuner that takes what a library proposes as long as it is in the space and free."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._seed = space, seed
        self._trials = ObservedTrials(space)

    def suggest(self, count: int) -> list[Configuration]:
        """Return the next configurations to try. Raises: InvalidInputError, also where the library is not installed."""
        check_count(count)
        taken = set(self._trials.taken)
        chosen = list(islice(self._acceptable(self._proposed(count), taken), count))
        if len(chosen) < count:
            others = self._space.random(len(taken) + count, self._seed)
            free = (configuration for configuration in others if self._space.key(configuration) not in taken)
            chosen += islice(free, count - len(chosen))
        return chosen

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learn the newest state of these trials. Raises: InvalidInputError."""
        self._trials.add(trials)

    def _proposed(self, count: int) -> Iterator[Configuration]:
        raise NotImplementedError

    def _acceptable(self, proposed: Iterator[Configuration], taken: set[str]) -> Iterator[Configuration]:
        for configuration in proposed:
            if self._space.contains(configuration) and (key := self._space.key(configuration)) not in taken:
                taken.add(key)
                yield configuration


class TpeTuner(AskingTuner):
    """Optuna's tree-structured Parzen estimator. Source: Bergstra et al. 2011, "Algorithms for hyper-parameter ..."."""

    name: ClassVar[str] = "tpe"

    def _proposed(self, count: int) -> Iterator[Configuration]:
        check_installed(self.name)
        study, order = self._study(), UnitPoints(self._space).order
        for configuration in self._trials.pending:
            study.enqueue_trial({name: _told(self._space.domains[name], configuration[name]) for name in configuration})
            _asked(study.ask(), self._space, order)  # stays running, which the sampler avoids
        for _ in range(TRIES * count):
            yield _asked(study.ask(), self._space, order)

    def _study(self) -> "optuna.Study":
        """Return Optuna's study with the ended trials."""
        import optuna  # noqa: PLC0415 - an extra

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        seed = self._seed + len(self._trials.taken)
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True, multivariate=False)
        study = optuna.create_study(sampler=sampler)
        states = {TrialState.DONE: "COMPLETE", TrialState.PRUNED: "PRUNED"}
        for trial in self._trials.ended[-TRIALS_MAX:]:
            params = {name: _told(self._space.domains[name], value) for name, value in trial.configuration.items()}
            study.add_trial(
                optuna.create_trial(
                    params=params,
                    distributions={name: _distribution(self._space.domains[name]) for name in params},
                    value=trial.objective,
                    state=optuna.trial.TrialState[states.get(trial.state, "FAIL")],
                )
            )
        return study


class CmaTuner(AskingTuner):
    """CMA-ES in the unit cube, with one coordinate a parameter. Source: Hansen 2016, "The CMA evolution strategy".

    A generation is the next so many ended trials, whoever suggested them; what failed is the worst of it.
    """

    name: ClassVar[str] = "cma"

    def _proposed(self, count: int) -> Iterator[Configuration]:
        check_installed(self.name)
        import cmaes  # noqa: PLC0415 - an extra

        points, width = UnitPoints(self._space), max(len(self._space.domains), 2)  # the library wants two at least
        optimiser = cmaes.CMA(
            mean=np.full(width, 0.5),
            sigma=SIGMA,
            bounds=np.array([[0.0, 1.0]] * width),
            seed=self._seed + len(self._trials.taken),
        )
        ended = [(_padded(points.point(trial.configuration), width), _worth(trial)) for trial in self._trials.ended]
        size = optimiser.population_size
        for begin in range(0, len(ended) - size + 1, size):
            optimiser.tell(ended[begin : begin + size])
            if optimiser.should_stop():
                break
        for _ in range(TRIES * count):
            yield points.configuration(optimiser.ask()[: len(self._space.domains)])


def _padded(point: "np.ndarray[Any, Any]", width: int) -> "np.ndarray[Any, Any]":
    return np.concatenate([point, np.full(width - len(point), 0.5)])


def _worth(trial: Trial) -> float:
    return np.inf if trial.objective is None else trial.objective


def _asked(trial: "optuna.Trial", space: Space, order: Sequence[str]) -> Configuration:
    """Return the values that Optuna suggests for the parameters that apply."""
    chosen: dict[str, Parameter] = {}
    for name in order:
        if space.requirements.applies(name, chosen):
            chosen[name] = _suggested(trial, name, space.domains[name])
    return {name: chosen[name] for name in space.domains if name in chosen}


def _suggested(trial: "optuna.Trial", name: str, domain: Domain) -> Parameter:
    suggested: Any = trial._suggest(name, _distribution(domain))  # by the distribution, whatever its kind
    value: Parameter = domain.listed[suggested] if isinstance(domain, OrdinalDomain) else suggested
    return value


def _told(domain: Domain, value: Parameter) -> Parameter:
    """Return the value as Optuna knows it: the place of one with an order."""
    return domain.listed.index(value) if isinstance(domain, OrdinalDomain) else value


def _distribution(domain: Domain) -> Any:
    import optuna  # noqa: PLC0415 - an extra

    if isinstance(domain, FloatDomain):
        return optuna.distributions.FloatDistribution(domain.low, domain.high, log=domain.log)
    if isinstance(domain, IntDomain):
        most = domain.low + (domain.high - domain.low) // domain.step * domain.step
        return optuna.distributions.IntDistribution(domain.low, most, log=domain.log, step=domain.step)
    values = domain.values() or ()
    if isinstance(domain, OrdinalDomain):
        return optuna.distributions.IntDistribution(0, len(values) - 1)
    return optuna.distributions.CategoricalDistribution(values)
