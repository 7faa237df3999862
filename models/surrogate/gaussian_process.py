"""A Gaussian process over tables of numbers and categories: for few rows, and for extrapolation."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.gp.gp import Solution
from crosswind.models.surrogate.log_errors import quantiles_of, spread
from crosswind.models.surrogate.mixed_kernel import MixedKernel, Points
from crosswind.models.surrogate.mixed_table import MixedTable
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError, check_rows
from crosswind.models.surrogate.validation import Mask

OUTLIER_DEVIATIONS = 2.5  # a row further than this from its prediction by the others gets more noise
JITTER = 1e-8
BLOCK_ROWS = 256  # predicted at once, so that their covariance with all rows stays in the processor's cache


@dataclass
class GaussianProcessSurrogate:
    """The exact posterior of the logarithm of the objective under a `MixedKernel`, at most probable constants.

    Constants are learned from `n_learned` rows drawn by `seed`; of more than `n_kept` rows the newest count. A row far
    from its prediction by the others gets more noise, like a Student-t error. Quantiles are those of the leave-one-out
    errors, stretched by each prediction's deviation.
    Source: Rasmussen and Williams 2006, chapters 2 and 5; leave-one-out: Sundararajan and Keerthi 2001.
    """

    seed: int = 0
    n_learned: int = 400
    n_kept: int = 2000
    n_steps: int = 60
    n_starts: int = 1
    _table: MixedTable | None = field(default=None, init=False, repr=False)
    _points: Points | None = field(default=None, init=False, repr=False)
    _theta: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _n_rows: int = field(default=0, init=False, repr=False)
    _centre: float = field(default=0.0, init=False, repr=False)
    _scale: float = field(default=1.0, init=False, repr=False)
    _y: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _weights: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _inverse: Floats = field(default_factory=lambda: np.empty((0, 0)), init=False, repr=False)
    _noises: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _quantiles: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns the posterior; two rows are the least. Raises: InvalidInputError."""
        check_rows(X, y, least=2)
        self._n_rows = len(y)
        X, y = X.iloc[-self.n_kept :], y[-self.n_kept :]
        self._table = MixedTable.of(X)
        self._points = self._table.points(X)
        self._centre = float(np.median(np.log(y)))
        self._scale = float(np.std(np.log(y))) or 1.0
        self._y = (np.log(y) - self._centre) / self._scale
        self._theta = self._learned(self._kernel(), self._points)
        self._solve(np.ones(len(y)))
        self._solve(np.maximum(1.0, (np.abs(self._standard_errors()) / OUTLIER_DEVIATIONS) ** 2))
        errors = self._standard_errors()
        self._quantiles = quantiles_of(errors - np.median(errors))
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS. Raises: NotFittedError, InvalidInputError."""
        if self._table is None or self._points is None:
            raise NotFittedError("GaussianProcessSurrogate.predict came before fit")
        kernel, points = self._kernel(), self._table.points(X)
        if len(points) == 0:
            return Prediction(LEVELS, np.empty((0, len(LEVELS))))
        logs, explained = np.empty(len(points)), np.empty(len(points))
        for rows in _blocks(len(points)):
            across = kernel.covariance(self._theta, points.take(rows), self._points)
            logs[rows], explained[rows] = across @ self._weights, ((across @ self._inverse) * across).sum(axis=1)
        variances = np.maximum(kernel.variances(self._theta, points) - explained, 0) + kernel.noise(self._theta)
        medians = np.exp(logs * self._scale + self._centre)
        return spread(medians, self._quantiles, scales=np.sqrt(variances) * self._scale)

    def medians(self, X: pd.DataFrame) -> Floats:
        """Medians of new rows, shape (n_rows,), without their intervals, which take longest. Raises: as predict."""
        if self._table is None or self._points is None:
            raise NotFittedError("GaussianProcessSurrogate.medians came before fit")
        kernel, points = self._kernel(), self._table.points(X)
        logs = [
            kernel.covariance(self._theta, points.take(rows), self._points) @ self._weights
            for rows in _blocks(len(points))
        ]
        return np.exp(np.concatenate([np.empty(0), *logs]) * self._scale + self._centre)

    def held_out(self, training: Mask, test: Mask) -> Floats:
        """Medians of test rows predicted from training rows with the same constants, (n_test,); masks over fitted rows.

        Rows older than those kept are NaN. Raises: NotFittedError, InvalidInputError.
        """
        from scipy.linalg import cho_factor, cho_solve  # noqa: PLC0415 - heavy, and needed only to learn

        if self._points is None:
            raise NotFittedError("GaussianProcessSurrogate.held_out came before fit")
        if training.shape != (self._n_rows,) or test.shape != (self._n_rows,):
            raise InvalidInputError(
                f"masks have shapes {training.shape} and {test.shape}, expected ({self._n_rows},), one a row"
            )
        first, kernel = self._n_rows - len(self._y), self._kernel()
        training_rows, rows = np.flatnonzero(training[first:]), np.flatnonzero(test[first:])
        points = self._points.take(training_rows)
        covariance = kernel.covariance(self._theta, points, points)
        covariance[np.diag_indices(len(covariance))] += self._noises[training_rows]
        weights = cho_solve(cho_factor(covariance, lower=True), self._y[training_rows])
        medians = np.full(int(test.sum()), np.nan)
        across = kernel.covariance(self._theta, self._points.take(rows), points)
        medians[len(medians) - len(rows) :] = np.exp(across @ weights * self._scale + self._centre)
        return medians

    def _kernel(self) -> MixedKernel:
        table = self._table
        assert table is not None  # noqa: S101  every caller has a table
        return MixedKernel(len(table.numbers), len(table.categories))

    def _learned(self, kernel: MixedKernel, points: Points) -> Floats:
        rng, priors = np.random.default_rng(self.seed), kernel.priors
        rows = np.sort(rng.permutation(len(points))[: self.n_learned])
        sample, y = points.take(rows), self._y[rows]
        strays = rng.standard_normal((self.n_starts - 1, len(priors.means)))
        starts = [priors.means, *(priors.means + 0.5 * priors.deviations * strays)]
        return priors.most_probable(lambda theta: kernel.misfit(theta, sample, y), steps=self.n_steps, starts=starts)

    def _solve(self, inflation: Floats) -> None:
        kernel, points = self._kernel(), self._points
        assert points is not None  # noqa: S101  fit made them
        covariance = kernel.covariance(self._theta, points, points)
        self._noises = kernel.noise(self._theta) * inflation + JITTER
        covariance[np.diag_indices(len(covariance))] += self._noises
        solution = Solution.of(covariance, self._y)
        self._inverse, self._weights = solution.inverse, solution.weights

    def _standard_errors(self) -> Floats:
        """Leave-one-out errors over their predicted deviations, (n,)."""
        return np.asarray(self._weights / np.sqrt(np.diag(self._inverse)), dtype=np.float64)


def _blocks(count: int) -> list[NDArray[np.int64]]:
    return [np.arange(first, min(first + BLOCK_ROWS, count)) for first in range(0, count, BLOCK_ROWS)]
