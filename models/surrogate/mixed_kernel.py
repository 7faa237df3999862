"""A covariance over tables of numbers and categories, and its misfit with gradient, to learn its constants."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gp import Priors, Solution, distances, matern, matern_with_slope

Codes: TypeAlias = NDArray[np.int64]

STRAY = 3.0  # constants stay within so many deviations of their priors


@dataclass(frozen=True)
class Points:
    """Rows for the kernel: `numbers` (n, n_numbers) standardised, `codes` (n, n_categories), -1 for unknown."""

    numbers: Floats
    codes: Codes

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: NDArray[np.int64]) -> "Points":
        """The points of these rows."""
        return Points(self.numbers[rows], self.codes[rows])


@dataclass(frozen=True)
class MixedKernel:
    """Covariance of a trend, of categories' levels and slopes, and of a smooth rest:

        k(x, x') = L (1 + sum_c e_c I_c) + sum_c b_c I_c + s M(r) prod_c (q_c + (1 - q_c) I_c)

    L = sum_d a_d z_d z'_d is a line in each (log-scaled) number, so that the model extrapolates; I_c is 1 where both
    rows have the same category c, else 0; M is the Matern 5/2 covariance of r^2 = sum_d (z_d - z'_d)^2 / l_d^2.
    `theta` holds the logarithms of a, l, e, b, the logits of q, then the logarithms of s and the noise variance.
    Source: Rasmussen and Williams 2006, sections 2.7, 4.2 and 5.4; constant covariance between categories: Qian, Wu and
    Wu 2008.
    """

    n_numbers: int
    n_categories: int

    @property
    def priors(self) -> Priors:
        """Log-normal priors of the constants, before any row is seen."""
        numbers, categories = self.n_numbers, self.n_categories
        means = self._theta(slope=0.1, length=1.5 * max(numbers, 1) ** 0.5, level=0.3, smooth=0.3, noise=0.02)
        deviations = np.repeat([1.5, 1.0, 1.5, 1.5], [numbers, numbers, 3 * categories, 2])
        reach = STRAY * deviations
        return Priors(means, deviations, np.stack([means - reach, means + reach], axis=1))

    def covariance(self, theta: Floats, left: Points, right: Points) -> Floats:
        """Covariance between two sets of rows without noise, shape (n_left, n_right)."""
        slopes, lengths, tilts, levels, shares, smooth, _ = self._split(theta)
        codes, place = np.unique(left.codes, axis=0, return_inverse=True)  # many rows, few combinations of categories
        same = self._same(codes, right.codes)

        def of_rows(by_combination: Floats) -> Floats:
            return by_combination if len(codes) == 1 else by_combination[place.ravel()]

        result = (left.numbers * slopes) @ right.numbers.T
        result *= of_rows(1.0 + np.tensordot(tilts, same, axes=1))
        result += of_rows(np.tensordot(levels, same, axes=1))
        rest = matern(distances(left.numbers, right.numbers, lengths))
        rest *= of_rows(smooth * _product(shares, same))
        result += rest
        return np.asarray(result, dtype=np.float64)

    def variances(self, theta: Floats, points: Points) -> Floats:
        """Variances of the rows, shape (n,); an unknown category equals itself alone."""
        slopes, _, tilts, levels, _, smooth, _ = self._split(theta)
        trend = (points.numbers**2 @ slopes) * (1 + tilts.sum())
        return np.asarray(trend + levels.sum() + smooth, dtype=np.float64)

    def noise(self, theta: Floats) -> float:
        """The variance of a measurement."""
        return float(np.exp(theta[-1]))

    def misfit(self, theta: Floats, points: Points, y: Floats) -> tuple[float, Floats]:
        """Return minus the log likelihood of values (n,) at rows, up to a constant, and its gradient by theta."""
        slopes, lengths, tilts, levels, shares, smooth, noise = self._split(theta)
        same, z = self._same(points.codes, points.codes), points.numbers
        line, trend = (z * slopes) @ z.T, 1.0 + np.tensordot(tilts, same, axes=1)
        correlation, falling = matern_with_slope(distances(z, z, lengths))
        product = _product(shares, same)
        covariance = line * trend + np.tensordot(levels, same, axes=1) + smooth * correlation * product
        covariance[np.diag_indices(len(y))] += noise
        solution = Solution.of(covariance, y)
        slope = solution.slope
        by_line, by_distance = slope * trend, slope * product * falling * smooth
        by_smooth = slope * correlation * smooth
        by_length = 2 * (by_distance.sum(axis=1) @ z**2 - np.einsum("nd,nd->d", z, by_distance @ z)) / lengths**2
        gradient = [
            slopes * np.einsum("nd,nd->d", z, by_line @ z),
            by_length,
            tilts * np.array([np.vdot(slope * line, matches) for matches in same]),
            levels * np.array([np.vdot(slope, matches) for matches in same]),
            shares * (1 - shares) * _by_share(shares, same, by_smooth),
            [np.vdot(by_smooth, product), noise * float(np.trace(slope))],
        ]
        return solution.misfit, np.concatenate(gradient)

    def _same(self, left: Codes, right: Codes) -> Floats:
        pairs = left.T[:, :, None] == right.T[:, None, :]
        return np.asarray(pairs & (left.T[:, :, None] >= 0), dtype=np.float64)

    def _theta(self, *, slope: float, length: float, level: float, smooth: float, noise: float) -> Floats:
        numbers, categories = self.n_numbers, self.n_categories
        logs = np.log([slope, length, level, level])
        repeated = np.repeat(logs, [numbers, numbers, categories, categories])
        return np.concatenate([repeated, np.zeros(categories), np.log([smooth, noise])])

    def _split(self, theta: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats, float, float]:
        numbers, categories = self.n_numbers, self.n_categories
        ends = np.cumsum([numbers, numbers, categories, categories, categories])
        slopes, lengths, tilts, levels, logits, rest = np.split(theta, ends)
        shares = 1 / (1 + np.exp(-logits))
        smooth, noise = np.exp(rest)
        return np.exp(slopes), np.exp(lengths), np.exp(tilts), np.exp(levels), shares, float(smooth), float(noise)


def _product(shares: Floats, same: Floats) -> Floats:
    product = np.ones(same.shape[1:])
    for share, matches in zip(shares, same, strict=True):
        product *= share + (1 - share) * matches
    return product


def _by_share(shares: Floats, same: Floats, leaning: Floats) -> Floats:
    whole = leaning * _product(shares, same)
    return np.array(
        [
            np.vdot(whole, (1 - matches) / (share + (1 - share) * matches))
            for share, matches in zip(shares, same, strict=True)
        ]
    )
