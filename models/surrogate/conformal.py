"""Conformal calibration: quantiles that keep their coverage on rows later than those learned from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.surrogate import NotFittedError, Surrogate, check_rows

TRAINING_ROWS_MIN = 2
CALIBRATION_ROWS_MIN = 2
ROWS_FOR_NINETY_PERCENT = 19  # (19 - 1) / (19 + 1) = 0.9
CALIBRATION_RATIO = 0.25


def promised_coverage(n_calibration: int) -> float:
    """The highest two-sided coverage that `n_calibration` errors can promise, whatever their distribution.

    The next of n + 1 exchangeable errors lies outside the extremes of the n before it with probability 2 / (n + 1).
    """
    return max(n_calibration - 1, 0) / (n_calibration + 1)


def calibration_rows(n_rows: int) -> int:
    """Return the number of last rows that calibrate: enough for 90 % if half the rows allow it, a quarter of many."""
    return min(max(ROWS_FOR_NINETY_PERCENT, math.ceil(CALIBRATION_RATIO * n_rows)), n_rows // 2)


def conformal_quantile(errors: Floats, level: float) -> float:
    """A value that the next exchangeable error is below (level > 0.5) or above (< 0.5) with the level's probability.

    errors: (n,), two at least. Where the level is too extreme for n errors, the largest (smallest) error is extended
    by an exponential tail as long as the errors' mean distance from their median: wider, but no promise.
    Source: Romano, Patterson, Candes 2019, "Conformalized quantile regression", one-sided. Raises: InvalidInputError.
    """
    if len(errors) < CALIBRATION_ROWS_MIN:
        raise InvalidInputError(f"{len(errors)} calibration errors, expected at least {CALIBRATION_ROWS_MIN}")
    if level < 0.5:
        return -conformal_quantile(-errors, 1 - level)
    ordered = np.sort(errors)
    if level == 0.5:
        return float(np.median(ordered))
    # The small number keeps 0.95 x 20 = 19.000000000000004 at the 19th error.
    rank = math.ceil((len(ordered) + 1) * level - 1e-9)
    if rank <= len(ordered):
        return float(ordered[rank - 1])
    tail = float(np.mean(np.abs(ordered - np.median(ordered))))
    return float(ordered[-1]) - tail * math.log((len(ordered) + 1) * (1 - level))


def conformal_corrections(errors: Floats, levels: Sequence[float]) -> Floats:
    """Conformal quantiles of errors (n, n_levels), of each column at its own level, (n_levels,)."""
    return np.array([conformal_quantile(column, level) for column, level in zip(errors.T, levels, strict=True)])


def calibration_errors(
    surrogate: Surrogate, X: pd.DataFrame, y: Floats, n_calibration: int | None
) -> tuple[Floats, tuple[float, ...]]:
    """Fit a surrogate to the first rows, and return its log errors on the last ones, (n_calibration, n_levels); levels.

    n_calibration: None for `calibration_rows`. Raises: InvalidInputError when there are too few rows for both parts.
    """
    check_rows(X, y, least=TRAINING_ROWS_MIN + CALIBRATION_ROWS_MIN)
    count = calibration_rows(len(y)) if n_calibration is None else n_calibration
    if not CALIBRATION_ROWS_MIN <= count <= len(y) - TRAINING_ROWS_MIN:
        raise InvalidInputError(
            f"n_calibration is {count} of {len(y)} rows, expected {CALIBRATION_ROWS_MIN} to "
            f"{len(y) - TRAINING_ROWS_MIN}"
        )
    predicted = surrogate.fit(X[:-count], y[:-count]).predict(X[-count:])
    return np.log(y[-count:])[:, None] - np.log(predicted.values), predicted.levels


@dataclass
class ConformalSurrogate:
    """A surrogate that learns from the first rows and corrects every quantile by its errors on the last ones.

    Coverage holds for exchangeable errors: as far as the next run resembles the calibration rows. Sorting the corrected
    quantiles moves the outermost ones outwards only, so the widest interval keeps its coverage.
    """

    surrogate: Surrogate
    n_calibration: int | None = None  # None: `calibration_rows`
    _corrections: Floats | None = field(default=None, init=False, repr=False)
    _promised_coverage: float = field(default=0.0, init=False, repr=False)

    @property
    def promised_coverage(self) -> float:
        """The highest two-sided coverage that the calibration rows can promise. Raises: NotFittedError."""
        if self._corrections is None:
            raise NotFittedError("ConformalSurrogate.promised_coverage came before fit")
        return self._promised_coverage

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns from rows in the order of time. Raises: InvalidInputError when there are too few for both parts."""
        errors, levels = calibration_errors(self.surrogate, X, y, self.n_calibration)
        self._corrections = conformal_corrections(errors, levels)
        self._promised_coverage = promised_coverage(len(errors))
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Corrected quantiles. Raises: NotFittedError, InvalidInputError."""
        if self._corrections is None:
            raise NotFittedError("ConformalSurrogate.predict came before fit")
        predicted = self.surrogate.predict(X)
        return monotone(predicted.levels, predicted.values * np.exp(self._corrections))
