"""Other people's tuners over the rows of a table: what they ask for is moved to the nearest row that is free.

Peers are told of the moved row, never of the one they asked for. Numbers and ordered values are given by their place
in the list, so that a step is a step.
"""

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from crosswind.data.trial import Configuration, Parameter, Trial, TrialState
from crosswind.models.tuner import Space
from crosswind.models.tuner.parameter import CategoricalDomain
from crosswind.models.tuner.pool import Pool
from crosswind.models.tuner.portfolio.encoding import foreign_points
from crosswind.models.tuner.source import Source

HAS_OPTUNA = importlib.util.find_spec("optuna") is not None
TOP = 10


class OptunaTpe:
    """Optuna's TPE with its defaults but one: multivariate, as recommended; after the sources' best rows, if any."""

    name: ClassVar[str] = "optuna_tpe"

    def __init__(self, space: Space, seed: int, sources: Sequence[Source] = ()) -> None:
        optuna: Any = importlib.import_module("optuna")  # only where it is installed
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        self._optuna, self._space = optuna, space
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
        self._pool = Pool.of(space, space.configurations())
        self._free = np.ones(len(self._pool), dtype=bool)
        self._places = {key: place for place, key in enumerate(self._pool.keys)}
        self._distributions = {name: self._distribution(name) for name in space.domains}
        self._planned = [self._row(point) for point in top_points(space, sources)]

    def suggest(self, count: int) -> list[Configuration]:
        """One configuration."""
        assert count == 1
        planned = [place for place in self._planned if self._free[place]]
        if planned:
            return [self._pool.configurations[planned[0]]]
        trial = self._study.ask(self._distributions)
        asked = {name: self._value(name, trial.params[name]) for name in self._space.domains}
        self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        return [self._pool.configurations[self._row(self._space.coordinates([asked])[0])]]

    def observe(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            self._free[self._places[self._space.key(trial.configuration)]] = False
            done = trial.state is TrialState.DONE
            made: Any = self._optuna.trial.create_trial(
                params={name: self._inside(name, value) for name, value in trial.configuration.items()},
                distributions=self._distributions,
                value=trial.objective if done else None,
                state=self._optuna.trial.TrialState.COMPLETE if done else self._optuna.trial.TrialState.FAIL,
            )
            self._study.add_trial(made)

    def _row(self, point: np.ndarray) -> int:
        distances = np.abs(self._pool.points - point).sum(axis=1)
        return int(np.argmin(np.where(self._free, distances, np.inf)))

    def _distribution(self, name: str) -> Any:
        domain = self._space.domains[name]
        values = domain.values() or ()
        if isinstance(domain, CategoricalDomain):
            return self._optuna.distributions.CategoricalDistribution(values)
        return self._optuna.distributions.IntDistribution(0, len(values) - 1)

    def _value(self, name: str, inside: Any) -> Parameter:
        domain = self._space.domains[name]
        found: Parameter = inside if isinstance(domain, CategoricalDomain) else (domain.values() or ())[inside]
        return found

    def _inside(self, name: str, value: Parameter) -> object:
        domain = self._space.domains[name]
        return value if isinstance(domain, CategoricalDomain) else (domain.values() or ()).index(value)


class TopTenThenTpe(OptunaTpe):
    """The sources' best rows in turn, ten in all, then Optuna's TPE."""

    name: ClassVar[str] = "top10_tpe"


def top_points(space: Space, sources: Sequence[Source]) -> list[np.ndarray]:
    """The best rows of every source in turn, TOP in all, as points of the space."""
    tops = [foreign_points(space, source.best(TOP))[0] for source in sources]
    return [top[place] for place in range(TOP) for top in tops if place < len(top)][:TOP]
