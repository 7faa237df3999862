"""Prediction from the nearest cohorts, scaled by a power law."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.gp.gp import square_distances
from crosswind.models.surrogate.log_errors import quantiles_of, spread
from crosswind.models.surrogate.log_linear import LogLinearSurrogate
from crosswind.models.surrogate.mixed_kernel import Points
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError, check_rows
from crosswind.models.surrogate.validation import Mask

LOG_DISTANCE_FLOOR = 0.05  # closer than 5 % is not resolved


@dataclass
class NearestCohortSurrogate:
    """The mean of the nearest rows' objectives, each scaled to the new configuration by a robust log-linear law.

    The distance of two rows is the change of log y between their numbers by the law, plus the deviation between a
    category's levels where these differ, so it needs no scales of its own; a row at distance d weighs
    1 / (d^2 + floor^2). Beyond the rows the law takes over, so unseen scales are predicted. Quantiles are those of the
    leave-one-out errors.
    """

    seed: int = 0
    n_nearest: int = 5
    level_distance: float = 2.0  # how much further another category is than its effect alone says
    _law: LogLinearSurrogate = field(default_factory=LogLinearSurrogate, init=False, repr=False)
    _points: Points | None = field(default=None, init=False, repr=False)
    _log_y: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _errors: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _log_quantiles: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns the law from two rows or more, and stores them. Raises: InvalidInputError."""
        check_rows(X, y, least=2)
        self._law = LogLinearSurrogate(seed=self.seed).fit(X, y)
        self._points, self._log_y = self._law.points(X), np.log(y)
        self._errors = self._log_y - self._law.expected(self._points)
        distances = self._distances(self._law, self._points, self._points)
        distances[np.diag_indices(len(y))] = np.inf
        left_out = self._errors - self._nearby(distances, self._errors)
        self._log_quantiles = quantiles_of(left_out - np.median(left_out))
        return self

    def held_out(self, training: Mask, test: Mask) -> Floats:
        """Medians of test rows by the law and the nearest of training rows, (n_test,). Raises: NotFittedError."""
        if self._points is None:
            raise NotFittedError("NearestCohortSurrogate.held_out came before fit")
        law = self._law.without(training)
        fitted, points = (self._points.take(np.flatnonzero(mask)) for mask in (training, test))
        errors = self._log_y[training] - law.expected(fitted)
        nearby = self._nearby(self._distances(law, points, fitted), errors)
        return np.asarray(np.exp(law.expected(points) + nearby), dtype=np.float64)

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS. Raises: NotFittedError, InvalidInputError."""
        if self._points is None:
            raise NotFittedError("NearestCohortSurrogate.predict came before fit")
        points = self._law.points(X)
        if len(points) == 0:
            return Prediction(LEVELS, np.empty((0, len(LEVELS))))
        nearby = self._nearby(self._distances(self._law, points, self._points), self._errors)
        medians = np.exp(self._law.expected(points) + nearby)
        return spread(medians, self._log_quantiles)

    def _distances(self, law: LogLinearSurrogate, points: Points, fitted: Points) -> Floats:
        """Distances in units of log y, shape (n, n_fitted)."""
        slopes = np.abs(law.slopes)
        squares = square_distances(points.numbers * slopes, fitted.numbers * slopes)
        for column, levels in enumerate(law.levels):
            apart = (self.level_distance * float(np.std(levels))) ** 2 if len(levels) else 0.0
            if apart > 0:
                other = points.codes[:, column, None] != fitted.codes[None, :, column]
                np.add(squares, apart, out=squares, where=other)
        return np.sqrt(squares, out=squares)

    def _nearby(self, distances: Floats, errors: Floats) -> Floats:
        """Mean errors of the law on the nearest fitted rows, shape (n,)."""
        count = min(self.n_nearest, distances.shape[1] - 1)
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        weights = 1 / (np.take_along_axis(distances, nearest, axis=1) ** 2 + LOG_DISTANCE_FLOOR**2)
        return np.asarray((weights * errors[nearest]).sum(axis=1) / weights.sum(axis=1), dtype=np.float64)
