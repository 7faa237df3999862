"""Other people's tuners over the rows of a table: what they ask for is moved to the nearest row that is free.

Peers observe the moved row, never the one they asked for. Numbers and ordered values are given by their place
in the list, so that a step is a step. Each takes part where it is installed: `make peers`.
"""

import importlib
import importlib.util
import tempfile
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Parameter, Trial, TrialState
from crosswind.models.tuner.search.pool import Pool
from crosswind.models.tuner.search.portfolio.encoding import foreign_points
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.parameter import CategoricalDomain
from crosswind.models.tuner.space.space import Space

TOP = 10
STARTING = 10  # rows that a Gaussian process of BoTorch wants before its first fit


def has(module: str) -> bool:
    """Return whether a peer is installed."""
    return importlib.util.find_spec(module) is not None


class RowPeer:
    """Base of all peers: the rows that are free, and after the sources' best rows, if any, what the peer asks."""

    def __init__(self, space: Space, seed: int, sources: Sequence[Source] = ()) -> None:
        self.space, self.seed = space, seed
        self._pool = Pool.of(space, space.configurations())
        self._free = np.ones(len(self._pool), dtype=bool)
        self._places = {key: place for place, key in enumerate(self._pool.keys)}
        self._planned = [self.row(point) for point in top_points(space, sources)]

    def suggest(self, count: int) -> list[Configuration]:
        """The sources' best rows that are free, then those that the peer asks for, all at once."""
        chosen: list[int] = []
        while len(chosen) < count and self._free.any():
            planned = [place for place in self._planned if self._free[place]]
            chosen.append(planned[0] if planned else self.asked())
            self._free[chosen[-1]] = False
        self._free[chosen] = True  # until they are observed
        return [self._pool.configurations[place] for place in chosen]

    def observe(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            self._free[self._places[self.space.key(trial.configuration)]] = False
            self.learn(trial.configuration, trial.objective if trial.state is TrialState.DONE else None)

    def asked(self) -> int:
        """The row that the peer asks for."""
        raise NotImplementedError

    def learn(self, configuration: Configuration, objective: float | None) -> None:
        """Tells the peer of a row; None where it failed."""
        raise NotImplementedError

    def row(self, point: Floats) -> int:
        """The free row nearest to a point."""
        distances = np.abs(self._pool.points - point).sum(axis=1)
        return int(np.argmin(np.where(self._free, distances, np.inf)))

    def row_of(self, inside: Sequence[Any]) -> int:
        """The free row nearest to one value a parameter, as the peer has them."""
        values = {name: self.value(name, encoded) for name, encoded in zip(self.space.domains, inside, strict=True)}
        return self.row(self.space.coordinates([values])[0])

    def values(self, name: str) -> Sequence[Parameter]:
        return self.space.domains[name].values() or ()

    def is_ordered(self, name: str) -> bool:
        return not isinstance(self.space.domains[name], CategoricalDomain)

    def value(self, name: str, inside: Any) -> Parameter:
        parameter: Parameter = self.values(name)[int(inside)] if self.is_ordered(name) else inside
        return parameter

    def inside(self, name: str, value: Parameter) -> Any:
        """A value as the peer has it: its place, or itself."""
        return self.values(name).index(value) if self.is_ordered(name) else value

    def worst(self, objectives: Sequence[float | None]) -> float:
        """Return what a failed row counts as where a peer takes numbers alone."""
        return max((objective for objective in objectives if objective is not None), default=1.0)


class OptunaTpe(RowPeer):
    """Optuna's TPE with its defaults but one: multivariate, as recommended."""

    name: ClassVar[str] = "optuna_tpe"
    sampler: ClassVar[str] = "TPESampler"
    options: ClassVar[dict[str, object]] = {"multivariate": True}

    def __init__(self, space: Space, seed: int, sources: Sequence[Source] = ()) -> None:
        super().__init__(space, seed, sources)
        optuna: Any = importlib.import_module("optuna")  # only where it is installed
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        self._optuna = optuna
        sampler = getattr(optuna.samplers, self.sampler)(seed=seed, **self.options)
        self._study = optuna.create_study(sampler=sampler)
        self._distributions = {name: self._distribution(name) for name in space.domains}

    def asked(self) -> int:
        trial = self._study.ask(self._distributions)
        self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        return self.row_of([trial.params[name] for name in self.space.domains])

    def learn(self, configuration: Configuration, objective: float | None) -> None:
        states = self._optuna.trial.TrialState
        made: Any = self._optuna.trial.create_trial(
            params={name: self.inside(name, value) for name, value in configuration.items()},
            distributions=self._distributions,
            value=objective,
            state=states.FAIL if objective is None else states.COMPLETE,
        )
        self._study.add_trial(made)

    def _distribution(self, name: str) -> Any:
        if self.is_ordered(name):
            return self._optuna.distributions.IntDistribution(0, len(self.values(name)) - 1)
        return self._optuna.distributions.CategoricalDistribution(self.values(name))


class TopTenThenTpe(OptunaTpe):
    """The sources' best rows in turn, ten in all, then Optuna's TPE."""

    name: ClassVar[str] = "top10_tpe"


class OptunaGp(OptunaTpe):
    """Optuna's Gaussian process."""

    name: ClassVar[str] = "optuna_gp"
    sampler: ClassVar[str] = "GPSampler"
    options: ClassVar[dict[str, object]] = {}


class Skopt(RowPeer):
    """scikit-optimize with its defaults: a Gaussian process and three acquisitions that hedge."""

    name: ClassVar[str] = "scikit_optimize"

    def __init__(self, space: Space, seed: int, sources: Sequence[Source] = ()) -> None:
        super().__init__(space, seed, sources)
        skopt: Any = importlib.import_module("skopt")
        warnings.simplefilter("ignore", UserWarning)  # that a point was evaluated before
        self._known: list[tuple[list[Any], float | None]] = []
        self._optimizer = skopt.Optimizer(
            [self._dimension(skopt.space, name) for name in space.domains], random_state=seed
        )

    def asked(self) -> int:
        return self.row_of(self._optimizer.ask())

    def learn(self, configuration: Configuration, objective: float | None) -> None:
        inside = [self.inside(name, configuration[name]) for name in self.space.domains]
        self._known.append((inside, objective))
        bad = self.worst([value for _, value in self._known])
        self._optimizer.tell(inside, bad if objective is None else objective)

    def _dimension(self, skopt_space: Any, name: str) -> Any:
        values = self.values(name)
        if self.is_ordered(name) and len(values) > 1:
            return skopt_space.Integer(0, len(values) - 1)
        return skopt_space.Categorical([self.inside(name, value) for value in values])


class Smac(RowPeer):
    """SMAC3's facade for hyper-parameters with its defaults: random forests, expected improvement of the logarithm."""

    name: ClassVar[str] = "smac3"
    trials: ClassVar[int] = 80

    def __init__(self, space: Space, seed: int, sources: Sequence[Source] = ()) -> None:
        super().__init__(space, seed, sources)
        smac: Any = importlib.import_module("smac")
        config_space: Any = importlib.import_module("ConfigSpace")
        self._runhistory: Any = importlib.import_module("smac.runhistory")
        self._folder = tempfile.TemporaryDirectory()
        self._space = config_space.ConfigurationSpace(seed=seed)
        for name in space.domains:
            values = self.values(name)
            made = (
                config_space.OrdinalHyperparameter if self.is_ordered(name) else config_space.CategoricalHyperparameter
            )
            self._space.add(made(name, list(range(len(values))) if self.is_ordered(name) else list(values)))
        scenario = smac.Scenario(
            self._space, deterministic=True, n_trials=self.trials, seed=seed, output_directory=self._folder.name
        )
        facade = smac.HyperparameterOptimizationFacade
        self._smac = facade(scenario, _never_called, overwrite=True, logging_level=False)
        self._configuration = config_space.Configuration
        self._seed: int | None = None
        self._costs: list[float | None] = []

    def asked(self) -> int:
        info = self._smac.ask()
        self._seed = info.seed
        return self.row_of([info.config[name] for name in self.space.domains])

    def learn(self, configuration: Configuration, objective: float | None) -> None:
        inside = {name: self.inside(name, configuration[name]) for name in self.space.domains}
        info = self._runhistory.TrialInfo(self._configuration(self._space, values=inside), seed=self._seed)
        status = self._runhistory.StatusType.CRASHED if objective is None else self._runhistory.StatusType.SUCCESS
        self._costs.append(objective)
        cost = self.worst(self._costs) if objective is None else objective  # an infinite one becomes no number inside
        # what is asked for, but no row of the table, stays running: its files would refuse that
        self._smac.tell(info, self._runhistory.TrialValue(cost, status=status), save=False)


class Botorch(RowPeer):
    """BoTorch: a Gaussian process with its default priors, logarithm of the expected improvement over all free rows."""

    name: ClassVar[str] = "botorch"

    def __init__(self, space: Space, seed: int, sources: Sequence[Source] = ()) -> None:
        super().__init__(space, seed, sources)
        self._start = np.random.default_rng(seed).permutation(len(self._pool)).tolist()
        self._known: list[tuple[int, float | None]] = []

    def asked(self) -> int:
        measured = [(place, value) for place, value in self._known if value is not None]
        if len(self._known) < STARTING or len(measured) < 2:
            return next(place for place in self._start if self._free[place])
        torch: Any = importlib.import_module("torch")
        botorch: Any = importlib.import_module("botorch")
        mll: Any = importlib.import_module("gpytorch.mlls")
        acquisition: Any = importlib.import_module("botorch.acquisition")
        warnings.simplefilter("ignore")  # of inputs that repeat, of fits that want another start
        torch.manual_seed(self.seed)
        values = np.array([value for _, value in measured])
        X = torch.tensor(self._pool.points[[place for place, _ in measured]])
        y = -torch.tensor(np.log(values))[:, None]
        model = botorch.models.SingleTaskGP(X, y)
        botorch.fit.fit_gpytorch_mll(mll.ExactMarginalLogLikelihood(model.likelihood, model))
        with torch.no_grad():
            free = np.flatnonzero(self._free)
            score = acquisition.LogExpectedImprovement(model, best_f=y.max())
            points = torch.tensor(self._pool.points[free])[:, None]
            scores = torch.cat([score(batch) for batch in points.split(2000)])
        return int(free[int(scores.argmax())])

    def learn(self, configuration: Configuration, objective: float | None) -> None:
        self._known.append((self._places[self.space.key(configuration)], objective))


def _never_called(config: object, seed: int = 0) -> float:
    """Refuse to measure, as SMAC would by itself, with its names: here it is only asked for rows."""
    raise AssertionError(f"{config} {seed}")


def top_points(space: Space, sources: Sequence[Source]) -> list[Floats]:
    """The best rows of every source in turn, TOP in all, as points of the space."""
    tops = [foreign_points(space, source.best(TOP))[0] for source in sources]
    return [top[place] for place in range(TOP) for top in tops if place < len(top)][:TOP]
