"""A predicted distribution, as quantiles."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """Quantiles of an objective: `values` has shape (n_configurations, n_levels) and never falls along a row."""

    levels: tuple[float, ...]
    values: Floats

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.levels):
            raise InvalidInputError(
                f"prediction values have shape {self.values.shape}, expected (n_configurations, {len(self.levels)})"
            )
        if any(later <= earlier for earlier, later in zip(self.levels, self.levels[1:], strict=False)):
            raise InvalidInputError(f"prediction levels {self.levels} do not rise")
        if np.any(np.diff(self.values, axis=1) < 0):
            raise InvalidInputError("prediction quantiles cross: sort them before")

    def at(self, level: float) -> Floats:
        """The quantile at one level, shape (n_configurations,), linear between the stored levels."""
        if not self.levels[0] <= level <= self.levels[-1]:
            raise InvalidInputError(f"level {level} is outside {self.levels[0]} ... {self.levels[-1]}")
        if level in self.levels:
            return np.array(self.values[:, self.levels.index(level)])
        return np.array([np.interp(level, self.levels, row) for row in self.values])


def monotone(levels: Sequence[float], values: Floats) -> Prediction:
    """A prediction from quantiles that may cross (Chernozhukov et al. 2010: sorting never worsens them)."""
    return Prediction(tuple(levels), np.sort(values, axis=1))
