"""A covariance over tables of numbers and categories, with its gradient, so that its constants can be learned."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats

Codes: TypeAlias = NDArray[np.int64]

SQRT5 = 5**0.5


@dataclass(frozen=True)
class Points:
    """Rows as the kernel sees them: `numbers` (n, n_numbers) standardised, `codes` (n, n_categories), -1 is unknown."""

    numbers: Floats
    codes: Codes

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: NDArray[np.int64]) -> "Points":
        """These rows only."""
        return Points(self.numbers[rows], self.codes[rows])


@dataclass(frozen=True)
class MixedKernel:
    """Trend, categories' levels and slopes, and a smooth rest:

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
    def means(self) -> Floats:
        """The values that theta is believed to have before any row is seen: medians of log-normal priors."""
        return self._theta(slope=0.1, length=1.5 * max(self.n_numbers, 1) ** 0.5, level=0.3, smooth=0.3, noise=0.02)

    @property
    def deviations(self) -> Floats:
        """The standard deviations by which theta may stray from `means`."""
        numbers, categories = self.n_numbers, self.n_categories
        return np.concatenate(
            [np.full(numbers, 1.5), np.full(numbers, 1.0), np.full(3 * categories, 1.5), [1.5, 1.5]],
        )

    def covariance(self, theta: Floats, left: Points, right: Points) -> Floats:
        """Between two sets of rows without noise, shape (n_left, n_right)."""
        slopes, lengths, tilts, levels, shares, smooth, _ = self._split(theta)
        codes, place = np.unique(left.codes, axis=0, return_inverse=True)  # many rows, few combinations of categories
        same = self._same(codes, right.codes)

        def of_rows(by_combination: Floats) -> Floats:
            return by_combination if len(codes) == 1 else by_combination[place.ravel()]

        result = (left.numbers * slopes) @ right.numbers.T
        result *= of_rows(1.0 + np.tensordot(tilts, same, axes=1))
        result += of_rows(np.tensordot(levels, same, axes=1))
        matern = _matern(_distances(left.numbers / lengths, right.numbers / lengths))
        matern *= of_rows(smooth * _product(shares, same))
        result += matern
        return np.asarray(result, dtype=np.float64)

    def variances(self, theta: Floats, points: Points) -> Floats:
        """The covariance of each row with itself, shape (n,); an unknown category is like no other, but like itself."""
        slopes, _, tilts, levels, _, smooth, _ = self._split(theta)
        trend = (points.numbers**2 @ slopes) * (1 + tilts.sum())
        return np.asarray(trend + levels.sum() + smooth, dtype=np.float64)

    def noise(self, theta: Floats) -> float:
        """The variance of a measurement."""
        return float(np.exp(theta[-1]))

    def loss(self, theta: Floats, points: Points, y: Floats, inflation: Floats) -> tuple[float, Floats]:
        """Minus the log posterior of theta and its gradient; `inflation` multiplies each row's noise, shape (n,)."""
        slopes, lengths, tilts, levels, shares, smooth, noise = self._split(theta)
        same, z = self._same(points.codes, points.codes), points.numbers
        line, trend = (z * slopes) @ z.T, 1.0 + np.tensordot(tilts, same, axes=1)
        distances = _distances(z / lengths, z / lengths)
        matern, falling = _matern(distances), _falling(distances)
        product = _product(shares, same)
        gram = line * trend + np.tensordot(levels, same, axes=1) + smooth * matern * product
        gram[np.diag_indices(len(y))] += noise * inflation
        inverse, log_determinant = _inverse(gram)
        weights = inverse @ y
        lean = np.outer(weights, weights) - inverse  # 2 x the likelihood's derivative by each entry of the gram
        leaning_trend, leaning_fall = lean * trend, lean * product * falling * smooth
        rows = leaning_fall.sum(axis=1)
        by_length = 2 * (rows @ z**2 - np.einsum("nd,nd->d", z, leaning_fall @ z)) / lengths**2
        leaning_smooth = lean * matern * smooth
        gradient = np.concatenate(
            [
                slopes * np.einsum("nd,nd->d", z, leaning_trend @ z),
                by_length,
                tilts * np.array([np.vdot(lean * line, matches) for matches in same]),
                levels * np.array([np.vdot(lean, matches) for matches in same]),
                shares * (1 - shares) * _by_share(shares, same, leaning_smooth),
                [np.vdot(leaning_smooth, product), noise * float(np.diag(lean) @ inflation)],
            ]
        )
        distance = (theta - self.means) / self.deviations
        value = 0.5 * float(y @ weights + log_determinant + distance @ distance)
        return value, distance / self.deviations - 0.5 * gradient

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


def _distances(left: Floats, right: Floats) -> Floats:
    """Between scaled rows, times the square root of 5."""
    distances = (-2 * left) @ right.T
    distances += (left**2).sum(axis=1)[:, None]
    distances += (right**2).sum(axis=1)[None, :]
    np.maximum(distances, 0.0, out=distances)
    np.sqrt(distances, out=distances)
    distances *= SQRT5
    return np.asarray(distances)


def _matern(distances: Floats) -> Floats:
    """Matern 5/2."""
    fading = np.exp(-distances)
    fading *= 1 + distances * (1 + distances / 3)
    return np.asarray(fading)


def _falling(distances: Floats) -> Floats:
    """Minus twice the derivative of Matern 5/2 by the squared distance."""
    return np.asarray((5 / 3) * (1 + distances) * np.exp(-distances))


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


def _inverse(gram: Floats) -> tuple[Floats, float]:
    """The inverse of a covariance and the logarithm of its determinant."""
    factor = np.linalg.cholesky(gram)
    half = np.linalg.solve(factor, np.eye(len(gram)))
    return half.T @ half, 2 * float(np.log(np.diag(factor)).sum())
