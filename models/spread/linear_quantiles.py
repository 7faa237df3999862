"""Linear quantile regression on a few conditions: small data, outliers, and a spread that conditions widen."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.surrogate import LEVELS

WIDE = 20.0  # a column that goes beyond is taken by logarithm
FARTHEST = 4.0  # standard deviations, to which values are clipped
PENALTY = 0.005  # on the sum of absolute weights of standardised columns
MEDIAN = LEVELS.index(0.5)


@dataclass(frozen=True)
class Standard:
    """Columns of numbers made comparable; a missing value becomes the mean."""

    names: tuple[str, ...]
    is_wide: NDArray[np.bool_]
    mean: Floats
    deviation: Floats  # 1 of a column that never varied, or was never known

    @classmethod
    def of(cls, table: pd.DataFrame) -> Self:
        """Learn from one or more rows. Raises: InvalidInputError for what is no number."""
        raw = _numbers(table)
        is_known = ~np.isnan(raw)
        is_wide = np.abs(np.where(is_known, raw, 0.0)).max(axis=0, initial=0.0) > WIDE
        values = np.where(is_wide, _logarithm(raw), raw)
        count = np.maximum(is_known.sum(axis=0), 1)
        mean = np.where(is_known, values, 0.0).sum(axis=0) / count
        deviation = np.sqrt(np.where(is_known, (values - mean) ** 2, 0.0).sum(axis=0) / count)
        return cls(tuple(map(str, table.columns)), is_wide, mean, np.where(deviation > 0, deviation, 1.0))

    def matrix(self, table: pd.DataFrame) -> Floats:
        """Standardised values, (n_rows, n_columns). Raises: InvalidInputError for other columns than in `of`."""
        if tuple(map(str, table.columns)) != self.names:
            raise InvalidInputError(
                f"conditions are {', '.join(map(str, table.columns)) or 'none'}, "
                f"expected {', '.join(self.names) or 'none'} as in fit"
            )
        raw = _numbers(table)
        values = (np.where(self.is_wide, _logarithm(raw), raw) - self.mean) / self.deviation
        return np.asarray(np.where(np.isnan(values), 0.0, np.clip(values, -FARTHEST, FARTHEST)))


@dataclass(frozen=True)
class LinearQuantiles:
    """Quantiles at LEVELS as linear functions of standardised columns; `weights` has shape (n_levels, n_columns).

    Source: Koenker and Bassett 1978; L1 penalty as in Belloni and Chernozhukov 2011.
    """

    constants: Floats  # (n_levels,)
    weights: Floats

    @classmethod
    def fit(cls, matrix: Floats, target: Floats) -> Self:
        """Learns from at least two rows; without columns these are the target's own quantiles."""
        if not matrix.shape[1] or not matrix.any():
            constants = np.quantile(target, LEVELS)
            return cls(constants, np.zeros((len(LEVELS), matrix.shape[1])))
        from sklearn.linear_model import QuantileRegressor  # noqa: PLC0415 - heavy, and needed only to learn

        models = [QuantileRegressor(quantile=level, alpha=PENALTY).fit(matrix, target) for level in LEVELS]
        return cls(np.array([model.intercept_ for model in models]), np.array([model.coef_ for model in models]))

    def predict(self, matrix: Floats) -> Floats:
        """Quantiles (n_rows, n_levels), rising along a row."""
        return np.sort(self.constants + matrix @ self.weights.T, axis=1)

    def shift(self, matrix: Floats) -> Floats:
        """Effect of conditions on the median, shape (n_rows,): 0 at the mean of the training rows."""
        return np.asarray(matrix @ self.weights[MEDIAN])


def _numbers(table: pd.DataFrame) -> Floats:
    try:
        raw = table.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise InvalidInputError(f"conditions have the types {dict(table.dtypes)}, expected numbers") from None
    if np.isinf(raw).any():
        column = table.columns[int(np.argmax(np.isinf(raw).any(axis=0)))]
        raise InvalidInputError(f"condition {column} holds an infinite value, expected numbers, or NaN where missing")
    return raw


def _logarithm(values: Floats) -> Floats:
    """The logarithm of the size, with the sign."""
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)))
