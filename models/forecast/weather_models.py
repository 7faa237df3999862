"""Candidates for the weather: each turns what was known at a time into log quantiles of a run's slowdown."""

from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import numpy as np
import xgboost as xgb

from crosswind.data.schema.prediction import Floats
from crosswind.models.forecast.observations import Asked, Lagged, Observations, questions
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError

RIDGE = 5.0  # rows' worth of belief that nothing can be told
SENSITIVITY_BELIEVED = 20.0  # runs' worth of belief that a workload feels the weather as all others do
ROWS_MAX = 20_000  # newest rows that are learned from


def _nothing() -> Floats:
    return np.empty(0)


class WeatherModel(Protocol):
    """Log quantiles of slowdown at a later time, from the runs that were known before."""

    name: ClassVar[str]

    def fit(self, past: Observations, lagged: Lagged, horizons_hours: tuple[float, ...]) -> Self:
        """Learns from runs, each asked about from every horizon before its start."""
        ...

    def predict(self, past: Observations, asked: Asked) -> Floats:
        """Log quantiles at LEVELS, shape (n_asked, n_levels). Raises: NotFittedError."""
        ...


@dataclass
class Climate:
    """The same every day: the quantiles of all runs so far. What every other candidate must beat."""

    name: ClassVar[str] = "climate"
    quantiles: Floats = field(default_factory=_nothing, repr=False)

    def fit(self, past: Observations, lagged: Lagged, horizons_hours: tuple[float, ...]) -> Self:  # noqa: ARG002
        """Learns the quantiles."""
        self.quantiles = np.quantile(past.log_ratio, LEVELS)
        return self

    def predict(self, past: Observations, asked: Asked) -> Floats:  # noqa: ARG002
        """The quantiles, for every question. Raises: NotFittedError."""
        if not len(self.quantiles):
            raise NotFittedError("Climate.predict came before fit")
        return np.tile(self.quantiles, (len(asked.target_ns), 1))


@dataclass
class LocalLevel:
    """Decaying levels of the system and of the workload, and the hour, weighed by ridge regression.

    `sensitivity` is how strongly a workload feels what is foretold, drawn to 1 where it has few runs. The spread is
    that of the misses from the same horizon.
    """

    name: ClassVar[str] = "local_level"
    lagged: Lagged | None = None
    weights: Floats = field(default_factory=_nothing, repr=False)  # (1 + n_columns,)
    sensitivity: dict[str, float] = field(default_factory=dict)
    horizons_hours: tuple[float, ...] = ()
    misses: Floats = field(default_factory=_nothing, repr=False)  # (n_horizons, n_levels)

    def fit(self, past: Observations, lagged: Lagged, horizons_hours: tuple[float, ...]) -> Self:
        """Learns weights, sensitivities and spreads."""
        asked, y = questions(past, horizons_hours)
        self.lagged, self.horizons_hours = lagged, horizons_hours
        design = self._design(past, asked)
        penalty = RIDGE * np.diag([0.0] + [1.0] * (design.shape[1] - 1))
        self.weights = np.asarray(np.linalg.solve(design.T @ design + penalty, design.T @ y), dtype=np.float64)
        foretold = design @ self.weights - self.weights[0]
        self.sensitivity = {
            str(w): _slope(foretold, y - self.weights[0], asked.workload == w) for w in np.unique(past.workload)
        }
        misses = (y - self._centre(design, asked)).reshape(len(horizons_hours), len(past))
        self.misses = np.quantile(misses, LEVELS, axis=1).T
        return self

    def predict(self, past: Observations, asked: Asked) -> Floats:
        """The centre with the spread of its horizon. Raises: NotFittedError."""
        if not len(self.misses):
            raise NotFittedError("LocalLevel.predict came before fit")
        nearest = np.abs(asked.horizon_hours[:, None] - np.array(self.horizons_hours)).argmin(axis=1)
        said: Floats = self._centre(self._design(past, asked), asked)[:, None] + self.misses[nearest]
        return said

    def _design(self, past: Observations, asked: Asked) -> Floats:
        if self.lagged is None:
            raise NotFittedError("LocalLevel.predict came before fit")
        rows = self.lagged.rows(past, asked)[:, : self.lagged.linear]
        return np.column_stack([np.ones(len(rows)), rows])

    def _centre(self, design: Floats, asked: Asked) -> Floats:
        sensitivity = np.array([self.sensitivity.get(str(name), 1.0) for name in asked.workload])
        centre: Floats = self.weights[0] + sensitivity * (design[:, 1:] @ self.weights[1:])
        return centre


@dataclass
class LaggedTrees:
    """Gradient-boosted quantiles of the same rows, with horizon, silence and counters."""

    seed: int = 0
    n_rounds: int = 80
    name: ClassVar[str] = "lagged_trees"
    lagged: Lagged | None = None
    booster: xgb.Booster | None = field(default=None, repr=False)

    def fit(self, past: Observations, lagged: Lagged, horizons_hours: tuple[float, ...]) -> Self:
        """Learns the quantiles."""
        self.lagged = lagged
        asked, y = questions(past.newest(ROWS_MAX // len(horizons_hours)), horizons_hours)
        rows = xgb.QuantileDMatrix(lagged.rows(past, asked), label=y, nthread=1)
        self.booster = xgb.train(self._parameters(), rows, num_boost_round=self.n_rounds)
        return self

    def predict(self, past: Observations, asked: Asked) -> Floats:
        """The quantiles, sorted. Raises: NotFittedError."""
        if self.booster is None or self.lagged is None:
            raise NotFittedError("LaggedTrees.predict came before fit")
        said = self.booster.inplace_predict(self.lagged.rows(past, asked))
        return np.sort(np.asarray(said, dtype=np.float64).reshape(len(asked.target_ns), len(LEVELS)), axis=1)

    def _parameters(self) -> dict[str, object]:
        return {
            "objective": "reg:quantileerror",
            "quantile_alpha": list(LEVELS),
            "tree_method": "hist",
            "max_depth": 3,
            "learning_rate": 0.1,
            "min_child_weight": 20,  # rows a leaf, since the loss has unit curvature
            "subsample": 0.8,
            "seed": self.seed,
            "nthread": 1,
        }


def _slope(foretold: Floats, y: Floats, rows: np.ndarray) -> float:
    """Least squares of y on what was foretold, drawn to 1."""
    belief = SENSITIVITY_BELIEVED * float(np.mean(foretold**2))
    chosen = foretold[rows]
    return float((chosen @ y[rows] + belief) / max(chosen @ chosen + belief, 1e-12))
