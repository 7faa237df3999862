"""Conformal calibration by groups (workload, scale), where a small group borrows from the whole."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.conformal import CALIBRATION_ROWS_MIN, calibration_errors, conformal_quantile
from crosswind.models.surrogate.surrogate import NotFittedError, Surrogate

DOUBLINGS_A_BIN = 2.0  # of a number column: 8 to 31 ranks are one group, 32 to 127 the next


@dataclass
class GroupErrors:
    """Errors by nested groups: rows that share the first column, the first two, and so on.

    A group's quantile is the weighted mean of its own errors' and of the next wider group's, the latter counting as
    `borrowed` rows. A number column is cut into bins of two doublings.
    """

    columns: tuple[str, ...]
    borrowed: float = 30.0
    _keys: list[list[str]] = field(default_factory=list, init=False, repr=False)
    _errors: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    def fit(self, X: pd.DataFrame, errors: Floats) -> Self:
        """Stores errors (n_rows,). Raises: InvalidInputError."""
        if errors.shape != (len(X),) or len(errors) < CALIBRATION_ROWS_MIN:
            raise InvalidInputError(
                f"errors have shape {errors.shape} for {len(X)} rows, expected one a row, {CALIBRATION_ROWS_MIN} rows"
            )
        self._keys = self._nested(X)
        self._errors = errors
        return self

    def quantiles(self, X: pd.DataFrame, levels: Sequence[float]) -> Floats:
        """Quantiles of the next error of the rows, (n_rows, n_levels). Raises: NotFittedError, InvalidInputError."""
        if not self._errors.size:
            raise NotFittedError("GroupErrors.quantiles came before fit")
        result = np.repeat([_quantiles(self._errors, levels)], len(X), axis=0)
        for keys, asked in zip(self._keys, self._nested(X), strict=True):
            rows_of = pd.Series(range(len(keys))).groupby(keys).indices
            for group, places in pd.Series(range(len(asked))).groupby(asked).indices.items():
                own = self._errors[rows_of.get(group, [])]
                if len(own) >= CALIBRATION_ROWS_MIN:
                    share = len(own) / (len(own) + self.borrowed)
                    result[places] = share * _quantiles(own, levels) + (1 - share) * result[places]
        return np.asarray(result, dtype=np.float64)

    def _nested(self, X: pd.DataFrame) -> list[list[str]]:
        """Groups of the rows at every depth."""
        missing = [name for name in self.columns if name not in X.columns]
        if missing:
            raise InvalidInputError(
                f"the table has the columns {', '.join(map(str, X.columns))}, expected {missing[0]}"
            )
        parts = [_bins(X[name]) for name in self.columns]
        return [["|".join(row) for row in zip(*parts[: depth + 1], strict=True)] for depth in range(len(parts))]


@dataclass
class GroupConformalSurrogate:
    """A surrogate that learns from the first rows and corrects each quantile by the errors of a row's own groups.

    As `ConformalSurrogate`, but a group whose errors are wider than the others' gets a wider band; coverage holds in a
    group as far as it has rows, for `GroupErrors` shrinks small groups. Source: Vovk 2012, "Conditional validity of
    inductive conformal predictors", group by group.
    """

    surrogate: Surrogate
    columns: tuple[str, ...]
    n_calibration: int | None = None  # None: `calibration_rows`
    borrowed: float = 30.0
    _corrections: list[GroupErrors] = field(default_factory=list, init=False, repr=False)

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns from rows in the order of time. Raises: InvalidInputError."""
        errors, _ = calibration_errors(self.surrogate, X, y, self.n_calibration)
        rows = X[-len(errors) :]
        self._corrections = [GroupErrors(self.columns, self.borrowed).fit(rows, column) for column in errors.T]
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Corrected quantiles. Raises: NotFittedError, InvalidInputError."""
        if not self._corrections:
            raise NotFittedError("GroupConformalSurrogate.predict came before fit")
        predicted = self.surrogate.predict(X)
        shifts = [
            errors.quantiles(X, [level])[:, 0]
            for errors, level in zip(self._corrections, predicted.levels, strict=True)
        ]
        return monotone(predicted.levels, predicted.values * np.exp(np.stack(shifts, axis=1)))


def _quantiles(errors: Floats, levels: Sequence[float]) -> Floats:
    return np.array([conformal_quantile(errors, level) for level in levels])


def _bins(values: "pd.Series[Any]") -> list[str]:
    if not is_numeric_dtype(values):
        return [str(value) for value in values.astype("string").fillna("")]
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    positive = np.where(numbers > 0, numbers, np.nan)
    return [str(value) for value in np.floor((np.log2(positive) + 1) / DOUBLINGS_A_BIN)]
