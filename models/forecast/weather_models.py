"""Candidates for the weather: models of the log quantiles of a run's slowdown, from what was known before."""

from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import numpy as np
import xgboost as xgb

from crosswind.data.schema.prediction import Floats
from crosswind.models.forecast.observations import Lagged, Observations, Targets, targets_of
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError

RIDGE = 5.0  # prior of no effect, in rows
SENSITIVITY_BELIEVED = 20.0  # prior of the common sensitivity, in runs
ROWS_MAX = 20_000  # newest rows that are learned from


def _nothing() -> Floats:
    return np.empty(0)


class WeatherModel(Protocol):
    """Log quantiles of slowdown at a later time, from the runs that were known before."""

    name: ClassVar[str]

    def fit(self, past: Observations, lagged: Lagged, horizons_hours: tuple[float, ...]) -> Self:
        """Learns to predict runs from every horizon before their start."""
        ...

    def predict(self, past: Observations, targets: Targets) -> Floats:
        """Log quantiles at LEVELS, shape (n_targets, n_levels). Raises: NotFittedError."""
        ...


@dataclass
class Climate:
    """The quantiles of all runs so far, at any time: the baseline of the other candidates."""

    name: ClassVar[str] = "climate"
    quantiles: Floats = field(default_factory=_nothing, repr=False)

    def fit(self, past: Observations, lagged: Lagged, horizons_hours: tuple[float, ...]) -> Self:  # noqa: ARG002
        """Learns the quantiles."""
        self.quantiles = np.quantile(past.log_ratio, LEVELS)
        return self

    def predict(self, past: Observations, targets: Targets) -> Floats:  # noqa: ARG002
        """The quantiles, for every target. Raises: NotFittedError."""
        if not len(self.quantiles):
            raise NotFittedError("Climate.predict came before fit")
        return np.tile(self.quantiles, (len(targets.target_ns), 1))


@dataclass
class LocalLevel:
    """Decaying levels of the system and of the workload, and the hour, weighed by ridge regression.

    `sensitivity` multiplies the expected change for a workload, drawn to 1 where it has few runs. The spread is that of
    the misses from the same horizon.
    """

    name: ClassVar[str] = "local_level"
    lagged: Lagged | None = None
    weights: Floats = field(default_factory=_nothing, repr=False)  # (1 + n_columns,)
    sensitivity: dict[str, float] = field(default_factory=dict)
    horizons_hours: tuple[float, ...] = ()
    misses: Floats = field(default_factory=_nothing, repr=False)  # (n_horizons, n_levels)

    def fit(self, past: Observations, lagged: Lagged, horizons_hours: tuple[float, ...]) -> Self:
        """Learns weights, sensitivities and spreads."""
        targets, y = targets_of(past, horizons_hours)
        self.lagged, self.horizons_hours = lagged, horizons_hours
        design = self._design(past, targets)
        penalty = RIDGE * np.diag([0.0] + [1.0] * (design.shape[1] - 1))
        self.weights = np.asarray(np.linalg.solve(design.T @ design + penalty, design.T @ y), dtype=np.float64)
        expected = design @ self.weights - self.weights[0]
        self.sensitivity = {
            str(w): _slope(expected, y - self.weights[0], targets.workload == w) for w in np.unique(past.workload)
        }
        misses = (y - self._centre(design, targets)).reshape(len(horizons_hours), len(past))
        self.misses = np.quantile(misses, LEVELS, axis=1).T
        return self

    def predict(self, past: Observations, targets: Targets) -> Floats:
        """The centre with the spread of its horizon. Raises: NotFittedError."""
        if not len(self.misses):
            raise NotFittedError("LocalLevel.predict came before fit")
        nearest = np.abs(targets.horizon_hours[:, None] - np.array(self.horizons_hours)).argmin(axis=1)
        predicted: Floats = self._centre(self._design(past, targets), targets)[:, None] + self.misses[nearest]
        return predicted

    def _design(self, past: Observations, targets: Targets) -> Floats:
        if self.lagged is None:
            raise NotFittedError("LocalLevel.predict came before fit")
        rows = self.lagged.rows(past, targets)[:, : self.lagged.linear]
        return np.column_stack([np.ones(len(rows)), rows])

    def _centre(self, design: Floats, targets: Targets) -> Floats:
        sensitivity = np.array([self.sensitivity.get(str(name), 1.0) for name in targets.workload])
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
        targets, y = targets_of(past.newest(ROWS_MAX // len(horizons_hours)), horizons_hours)
        rows = xgb.QuantileDMatrix(lagged.rows(past, targets), label=y, nthread=1)
        self.booster = xgb.train(self._parameters(), rows, num_boost_round=self.n_rounds)
        return self

    def predict(self, past: Observations, targets: Targets) -> Floats:
        """The quantiles, sorted. Raises: NotFittedError."""
        if self.booster is None or self.lagged is None:
            raise NotFittedError("LaggedTrees.predict came before fit")
        predicted = self.booster.inplace_predict(self.lagged.rows(past, targets))
        return np.sort(np.asarray(predicted, dtype=np.float64).reshape(len(targets.target_ns), len(LEVELS)), axis=1)

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


def _slope(expected: Floats, y: Floats, rows: np.ndarray) -> float:
    """Least squares of y on what was expected, drawn to 1."""
    belief = SENSITIVITY_BELIEVED * float(np.mean(expected**2))
    chosen = expected[rows]
    return float((chosen @ y[rows] + belief) / max(chosen @ chosen + belief, 1e-12))
