"""Arithmetic that all Gaussian processes share: Matern kernel, posterior, likelihood, search for hyper-parameters.

Notation, with n points learned from, m points asked about, d coordinates and p hyper-parameters:

| name | shape | meaning |
|---|---|---|
| `X` | (n, d) | points; `scaled` where each coordinate is divided by its length |
| `y` | (n,) | standardised values at X |
| `theta` | (p,) | hyper-parameters, as logarithms unless the kernel says otherwise |
| `distance` | (n, m) | sqrt(5) times the Euclidean distance between scaled points |
| `covariance` | (n, n) | of y: the kernel at X and X, and the noise on the diagonal |
| `cross` | (m, n) | covariance of the values at the points asked about with those at X |
| `factor` | (n, n) | lower Cholesky factor of the covariance |
| `inverse` | (n, n) | inverse of the covariance |
| `weights` | (n,) | inverse @ y: `cross @ weights` is the posterior mean |

Source: Rasmussen and Williams 2006, "Gaussian processes for machine learning", chapters 2, 4 and 5.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from crosswind.data.schema.prediction import Floats

SQRT5 = 5**0.5
IMPOSSIBLE = 1e25  # misfit of hyper-parameters under which the covariance is not positive definite
Misfit: TypeAlias = Callable[[Floats], tuple[float, Floats]]  # theta -> value, gradient (p,)
Correlation: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]  # distance -> correlation, slope


def distances(A: Floats, B: Floats, lengths: Floats) -> Floats:
    """Return sqrt(5) times the distances between points (n, d) and (m, d) scaled by lengths (d,), shape (n, m)."""
    scale = SQRT5 / lengths
    squares = square_distances(A * scale, B * scale)
    return np.sqrt(squares, out=squares)


def square_distances(A: Floats, B: Floats) -> Floats:
    """Return the squared distances between points (n, d) and (m, d), shape (n, m)."""
    squares: Floats = (-2 * A) @ B.T
    squares += (A**2).sum(axis=1)[:, None]
    squares += (B**2).sum(axis=1)[None, :]
    return np.maximum(squares, 0.0, out=squares)


def square_gaps(X: Floats) -> Floats:
    """Return the squared differences of points (n, d), one matrix a coordinate, shape (d, n, n)."""
    return np.asarray((X.T[:, :, None] - X.T[:, None, :]) ** 2, np.float64)


def matern(distance: Floats) -> Floats:
    """Return the Matern 5/2 correlation, in the shape of `distance`."""
    correlation: Floats = np.exp(-distance)
    correlation *= 1 + distance * (1 + distance / 3)
    return correlation


def matern_with_slope(distance: Floats) -> tuple[Floats, Floats]:
    """Return the Matern 5/2 correlation, and minus twice its derivative by the squared distance of scaled points."""
    decay = np.exp(-distance)
    falling = decay * (1 + distance)
    return falling + decay * distance**2 / 3, falling * (5 / 3)


def rough_matern_with_slope(distance: Floats) -> tuple[Floats, Floats]:
    """Return the Matern 3/2 correlation, and minus twice its derivative by the squared distance of scaled points."""
    rescaled = distance * (3 / 5) ** 0.5
    decay = np.exp(-rescaled)
    return (1 + rescaled) * decay, 3 * decay


@dataclass(frozen=True)
class Solution:
    """A covariance solved for its values. Raises: LinAlgError where it is not positive definite."""

    factor: Floats
    inverse: Floats
    weights: Floats
    misfit: float  # minus the logarithm of the marginal likelihood, without its constant n log(2 pi) / 2

    @classmethod
    def of(cls, covariance: Floats, y: Floats) -> Self:
        """Solve a covariance (n, n), of which the lower triangle is read, for values (n,)."""
        from scipy.linalg import lapack  # noqa: PLC0415 - heavy, and needed only to learn

        factor, info = lapack.dpotrf(covariance, lower=1)
        if info != 0:
            raise np.linalg.LinAlgError(f"minor {info} of a covariance of {len(y)} values is not positive")
        lower, _ = lapack.dpotri(factor, lower=1)
        inverse = lower + np.tril(lower, -1).T
        weights, _ = lapack.dpotrs(factor, y, lower=1)
        return cls(factor, inverse, weights, 0.5 * float(y @ weights) + float(np.log(np.diag(factor)).sum()))

    @property
    def slope(self) -> Floats:
        """Derivative of the misfit by each entry of the covariance, shape (n, n)."""
        return 0.5 * (self.inverse - np.outer(self.weights, self.weights))


def leave_one_out(y: Floats, weights: Floats, inverse: Floats) -> tuple[Floats, Floats]:
    """Return the expectation of each value from all others, and its deviation with noise, shape (n,) each.

    Source: ibid., equation 5.12.
    """
    diagonal = np.diag(inverse)
    return y - weights / diagonal, np.sqrt(1 / diagonal)


@dataclass(frozen=True)
class Priors:
    """Independent normal priors of the hyper-parameters and the bounds of their search, each (p,) or (p, 2)."""

    means: Floats
    deviations: Floats
    bounds: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[float, float]], bounds: Sequence[tuple[float, float]] | Floats) -> Self:
        """Make them of a mean and a deviation, and of two bounds, a hyper-parameter."""
        means, deviations = np.array(rows).T
        return cls(means, deviations, np.array(bounds))

    def penalty(self, theta: Floats) -> tuple[float, Floats]:
        """Return minus the logarithm of the density, up to a constant, and its gradient (p,)."""
        distance = (theta - self.means) / self.deviations
        return 0.5 * float(distance @ distance), distance / self.deviations

    def most_probable(self, misfit: Misfit, *, steps: int, starts: Sequence[Floats] = ()) -> Floats:
        """Return the theta of the least misfit and penalty, the best that L-BFGS reaches from the starts.

        Without starts it begins at the priors' means.
        """
        from scipy.optimize import minimize  # noqa: PLC0415 - heavy, and needed only to learn

        def loss(theta: Floats) -> tuple[float, Floats]:
            try:
                value, gradient = misfit(theta)
            except np.linalg.LinAlgError:
                return IMPOSSIBLE, np.zeros_like(theta)
            penalty, push = self.penalty(theta)
            return value + penalty, gradient + push

        options = {"maxiter": steps}
        optima = [
            minimize(loss, start, jac=True, method="L-BFGS-B", bounds=self.bounds, options=options)
            for start in starts or [np.clip(self.means, *self.bounds.T)]
        ]
        return np.asarray(min(optima, key=lambda optimum: float(optimum.fun)).x, np.float64)
