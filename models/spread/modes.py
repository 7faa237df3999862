"""Two modes of a cohort's runs, such as with and without a neighbour, where its history separates them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.surrogate import LEVELS

RUNS_MIN = 20
ITERATIONS = 100
SMALLEST_SHARE = 0.1
SMALLEST_DEVIATION = 0.01  # 1 % of the time: below lies the clock
DEEPEST = 0.3  # between the modes, the density falls below this share of the lower one's
BIC_GAIN = 10.0  # "very strong" evidence for the second
GRID_POINTS = 2000
GRID_REACH = 5.0  # standard deviations


@dataclass(frozen=True)
class Modes:
    """A mixture of two normal distributions, the lower first; arrays have shape (2,).

    Source: Dempster, Laird, Rubin 1977 (EM); Kass and Raftery 1995 (BIC).
    """

    shares: Floats
    means: Floats
    deviations: Floats

    @classmethod
    def of(cls, values: Floats) -> Self | None:
        """The two modes of these values, None where one distribution does as well."""
        if len(values) < RUNS_MIN:
            return None
        modes = cls._halves(values)
        for _ in range(ITERATIONS):
            densities = modes._densities(values)
            modes = cls._of(values, densities / densities.sum(axis=1, keepdims=True))
        return modes if modes._is_apart() and modes._gain(values) > BIC_GAIN else None

    def quantiles(self) -> Floats:
        """At LEVELS, shape (n_levels,)."""
        from scipy.special import ndtr  # noqa: PLC0415 - heavy, and few cohorts need it

        low = float((self.means - GRID_REACH * self.deviations).min())
        high = float((self.means + GRID_REACH * self.deviations).max())
        grid = np.linspace(low, high, GRID_POINTS)
        cumulative = ndtr((grid[:, None] - self.means) / self.deviations) @ self.shares
        return np.interp(LEVELS, cumulative, grid)

    @classmethod
    def _halves(cls, values: Floats) -> Self:
        """A start: the values parted where their largest gap within the middle 80 % lies."""
        ordered = np.sort(values)
        edge = max(1, len(ordered) // 10)
        gaps = np.diff(ordered[edge:-edge])
        cut = edge + int(np.argmax(gaps)) + 1
        is_low = np.arange(len(ordered)) < cut
        return cls._of(ordered, np.column_stack([is_low, ~is_low]).astype(np.float64))

    @classmethod
    def _of(cls, values: Floats, belongs: Floats) -> Self:
        weights = belongs.sum(axis=0) + 1e-9
        means = (belongs * values[:, None]).sum(axis=0) / weights
        squares = (belongs * (values[:, None] - means) ** 2).sum(axis=0) / weights
        deviations = np.maximum(np.sqrt(squares), SMALLEST_DEVIATION)
        order = np.argsort(means)
        return cls((weights / weights.sum())[order], means[order], deviations[order])

    def _densities(self, values: Floats) -> Floats:
        return np.asarray(self.shares * _normal(values[:, None], self.means, self.deviations) + 1e-300)

    def _is_apart(self) -> bool:
        """Return whether there is a valley between the modes, not just a shoulder or a tail."""
        if self.shares.min() < SMALLEST_SHARE:
            return False
        between = self._densities(np.linspace(float(self.means[0]), float(self.means[1]), GRID_POINTS)).sum(axis=1)
        return bool(between.min() < DEEPEST * min(between[0], between[-1]))

    def _gain(self, values: Floats) -> float:
        """The excess of the Bayesian information criterion of one normal distribution: 2 against 5 parameters."""
        deviation = max(float(values.std()), SMALLEST_DEVIATION)
        one = np.log(_normal(values, values.mean(), deviation) + 1e-300).sum()
        two = np.log(self._densities(values).sum(axis=1)).sum()
        return float(2 * (two - one) - 3 * np.log(len(values)))


def _normal(values: Floats, mean: Floats | float, deviation: Floats | float) -> Floats:
    return np.asarray(np.exp(-(((values - mean) / deviation) ** 2) / 2) / (deviation * np.sqrt(2 * np.pi)))
