"""A band around medians, as wide as they erred elsewhere at such a distance from what was measured."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.log_errors import quantiles_of_groups
from crosswind.models.surrogate.surrogate import LEVELS

SCALE_MIN = 0.01  # of log errors: two runs of one configuration differ by as much


@dataclass(frozen=True)
class DistanceBand:
    """Mean absolute errors of logarithms, which grow linearly with distances, and the quantiles in their unit."""

    at_anchor: float
    slopes: Floats  # (n_distances,)
    quantiles: Floats  # (n_levels,)

    @classmethod
    def of(cls, errors: Floats, distances: Floats, groups: NDArray[np.int64], deviation: float) -> Self:
        """Learns from log errors (n,) of groups (n,), alike within one, at distances (n, n_distances).

        A group to come of which nothing is known has errors of this deviation: with few groups the band is wide.
        """
        if not len(errors):
            return cls(1.0, np.zeros(distances.shape[1]), quantiles_of_groups(errors, groups, deviation))
        design = np.column_stack([np.ones(len(errors)), distances])
        [least, *slopes], _ = nnls(design, np.abs(errors))
        band = cls(max(float(least), SCALE_MIN), np.array(slopes), np.zeros(len(LEVELS)))
        units = band.units(distances)
        quantiles = quantiles_of_groups(errors / units, groups, deviation / float(np.mean(units)))
        return cls(band.at_anchor, band.slopes, quantiles)

    def units(self, distances: Floats) -> Floats:
        """Mean absolute log errors at distances (n, n_distances), (n,)."""
        return np.asarray(self.at_anchor + distances @ self.slopes, dtype=np.float64)

    def around(self, medians: Floats, distances: Floats) -> Prediction:
        """Quantiles at LEVELS around medians (n,); the median itself is that of what was predicted."""
        outer = np.where(np.array(LEVELS) == 0.5, 0.0, self.quantiles)
        outer = np.where(np.array(LEVELS) < 0.5, np.minimum(outer, 0.0), np.maximum(outer, 0.0))
        return monotone(LEVELS, medians[:, None] * np.exp(np.outer(self.units(distances), outer)))
