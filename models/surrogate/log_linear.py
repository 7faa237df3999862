"""A law in the logarithms of a table's numbers, with a level for each category."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.surrogate.log_errors import quantiles_of, spread
from crosswind.models.surrogate.log_normal import MAD_TO_DEVIATION
from crosswind.models.surrogate.mixed_kernel import Codes, Points
from crosswind.models.surrogate.mixed_table import MixedTable
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError, check_rows
from crosswind.models.surrogate.validation import Mask

ROBUST_PASSES = 6
HUBER_DEVIATIONS = 1.345  # 95 % efficient where errors are normal (Huber 1964)


@dataclass
class LogLinearSurrogate:
    """log y = a + sum_d b_d z_d + sum_c level_c: a power law in each log-scaled number, robust against outliers.

    `penalty` is the variance of an error over that of a coefficient, numbers standardised, so that rarely seen
    categories stay near 0. Fitted by iteratively re-weighted ridge regression.
    Source: Huber 1964; Hoerl and Kennard 1970.
    """

    seed: int = 0
    penalty: float = 0.3
    _table: MixedTable | None = field(default=None, init=False, repr=False)
    _points: Points | None = field(default=None, init=False, repr=False)
    _log_y: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _slopes: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _levels: list[Floats] = field(default_factory=list, init=False, repr=False)
    _intercept: float = field(default=0.0, init=False, repr=False)
    _quantiles: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    @property
    def slopes(self) -> Floats:
        """Change of log y by one standard deviation of each number, shape (n_numbers,)."""
        return self._slopes

    @property
    def levels(self) -> list[Floats]:
        """The addition of each category to log y, an array a category column."""
        return self._levels

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns the law from two rows or more. Raises: InvalidInputError."""
        check_rows(X, y, least=2)
        self._table = MixedTable.of(X)
        self._points, self._log_y = self._table.points(X), np.log(y)
        self._take_law(self._law(np.ones(len(y), dtype=np.bool_)))
        self._quantiles = quantiles_of(self._log_y - self.expected(self._points))
        return self

    def held_out(self, training: Mask, test: Mask) -> Floats:
        """Medians of test rows by the law of training rows, (n_test,). Raises: NotFittedError."""
        return np.asarray(np.exp(self.without(training).expected(self._rows().take(np.flatnonzero(test)))), np.float64)

    def without(self, training: Mask) -> "LogLinearSurrogate":
        """The law of the training rows only, in the same units. Raises: NotFittedError."""
        self._rows()
        law = replace(self)
        law._table = self._table
        law._take_law(self._law(training))
        return law

    def _rows(self) -> Points:
        if self._points is None:
            raise NotFittedError("LogLinearSurrogate.held_out came before fit")
        return self._points

    def _sizes(self) -> list[int]:
        assert self._table is not None  # noqa: S101  every caller has a table
        return [len(categories) for categories in self._table.columns.categories.values() if categories is not None]

    def _law(self, training: Mask) -> tuple[float, Floats]:
        points = self._rows().take(np.flatnonzero(training))
        design = np.column_stack([points.numbers, _hot(points.codes, self._sizes())])
        return _robust_ridge(design, self._log_y[training], self.penalty)

    def _take_law(self, law: tuple[float, Floats]) -> None:
        self._intercept, coefficients = law
        sizes = self._sizes()
        ends = np.cumsum([len(coefficients) - sum(sizes), *sizes])
        self._slopes, *self._levels = np.split(coefficients, ends)[:-1]

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS, by the spread of the errors of fitting. Raises: NotFittedError, InvalidInputError."""
        if self._table is None:
            raise NotFittedError("LogLinearSurrogate.predict came before fit")
        if len(X) == 0:
            self._table.points(X)
            return Prediction(LEVELS, np.empty((0, len(LEVELS))))
        return spread(np.exp(self.expected(self._table.points(X))), self._quantiles)

    def medians(self, X: pd.DataFrame) -> Floats:
        """Medians by the law, shape (n_rows,). Raises: NotFittedError, InvalidInputError."""
        return np.asarray(np.exp(self.expected(self.points(X))), dtype=np.float64)

    def points(self, X: pd.DataFrame) -> Points:
        """The rows as points. Raises: NotFittedError, InvalidInputError."""
        if self._table is None:
            raise NotFittedError("LogLinearSurrogate.points came before fit")
        return self._table.points(X)

    def expected(self, points: Points) -> Floats:
        """log y by the law, shape (n,); an unknown category adds nothing."""
        result = self._intercept + points.numbers @ self._slopes
        for codes, levels in zip(points.codes.T, self._levels, strict=True):
            result = result + np.append(levels, 0.0)[codes]  # -1 is the last
        return np.asarray(result, dtype=np.float64)


def _hot(codes: Codes, sizes: list[int]) -> Floats:
    blocks = [column[:, None] == np.arange(size)[None, :] for column, size in zip(codes.T, sizes, strict=True)]
    return np.column_stack([np.empty((len(codes), 0)), *blocks]).astype(np.float64)


def _robust_ridge(design: Floats, y: Floats, penalty: float) -> tuple[float, Floats]:
    """Intercept, free of the penalty, and coefficients."""
    weights = np.ones(len(y))
    ridge = penalty * np.eye(design.shape[1] + 1)
    ridge[0, 0] = 1e-9
    full = np.column_stack([np.ones(len(y)), design])
    solution = np.zeros(full.shape[1])
    for _ in range(ROBUST_PASSES):
        solution = np.linalg.solve(full.T @ (full * weights[:, None]) + ridge, full.T @ (weights * y))
        errors = np.abs(y - full @ solution)
        limit = HUBER_DEVIATIONS * max(MAD_TO_DEVIATION * float(np.median(errors)), 1e-6)
        weights = np.minimum(1.0, limit / np.maximum(errors, 1e-12))
    return float(solution[0]), solution[1:]
