"""A Gaussian process that is fast enough to be fitted for every source and to predict tens of thousands of points."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import ndtr

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gp import (
    Correlation,
    Priors,
    Solution,
    distances,
    leave_one_out,
    matern,
    matern_with_slope,
    square_gaps,
)
from crosswind.models.gp.normal import density

# Log-normal priors (mean and standard deviation of the logarithm) keep a handful of points from deciding alone.
VARIANCE_PRIOR = (0.0, 1.0)
LENGTH_PRIOR = (0.0, 1.0)
NOISE_PRIOR = (-5.0, 1.5)
BOUNDS = {"variance": (0.05, 20.0), "length": (0.05, 50.0), "noise": (1e-5, 1.0)}
STEPS_MAX = 40
ABOVE_MEAN = math.sqrt(2 / math.pi)  # the expectation of a standard normal value above 0
BLOCK = 4096  # points predicted at once, so that the kernel stays in the processor's cache


@dataclass(frozen=True)
class Process:
    """The posterior of standardised values: Matern 5/2 with one length a coordinate, plus measurement noise.

    Hyper-parameters are maximum a posteriori; the notation is that of `gp`.
    """

    theta: Floats  # logarithms of variance, lengths and noise, (d + 2,)
    X: Floats  # (n, d)
    y: Floats  # (n,)
    factor: Floats  # (n, n)
    weights: Floats  # (n,)

    @classmethod
    def fitted(cls, X: Floats, y: Floats) -> Self:
        """Fit hyper-parameters and posterior; X: (n, d) in the unit cube, y: (n,) standardised."""
        return cls.given(best_theta(X, y), X, y)

    @classmethod
    def given(cls, theta: Floats, X: Floats, y: Floats) -> Self:
        """The posterior of values (n,) at X (n, d) under given hyper-parameters."""
        factor = covariance_factor(theta, X)
        return cls(theta, X, y, factor, np.asarray(cho_solve((factor, True), y)))

    @property
    def expected_best(self) -> float:
        """The smallest expected value at the points learned from."""
        return float(self.predict(self.X)[0].min())

    def believing(self, X: Floats) -> "Process":
        """The posterior as if the points X had been measured at their expected values (kriging believer)."""
        if len(X) == 0:
            return self
        return Process.given(self.theta, np.vstack([self.X, X]), np.concatenate([self.y, self.predict(X)[0]]))

    def with_worse(self, X: Floats) -> "Process":
        """The posterior as if the points X had values above the mean: what is expected of these, or more."""
        if len(X) == 0:
            return self
        values = np.maximum(self.predict(X)[0], ABOVE_MEAN)
        return Process.given(self.theta, np.vstack([self.X, X]), np.concatenate([self.y, values]))

    def predict(self, X: Floats) -> tuple[Floats, Floats]:
        """Expected value and standard deviation without noise at X (m, d), (m,) each."""
        parts = [self._predict(X[start : start + BLOCK]) for start in range(0, len(X), BLOCK)]
        if not parts:
            return np.empty(0), np.empty(0)
        return np.concatenate([mean for mean, _ in parts]), np.concatenate([deviation for _, deviation in parts])

    def _predict(self, X: Floats) -> tuple[Floats, Floats]:
        cross = kernel_between(self.theta, self.X, X)
        explained = solve_triangular(self.factor, cross, lower=True, check_finite=False, overwrite_b=False)
        variance = math.exp(self.theta[0]) - np.einsum("ij,ij->j", explained, explained)
        return np.asarray(self.weights @ cross), np.sqrt(np.maximum(variance, 1e-12))

    def left_out(self) -> tuple[Floats, Floats]:
        """Return the expectation of each value from all others, and the deviation with noise, (n,) each.

        Source: Rasmussen and Williams 2006, equation 5.12.
        """
        inverse = cho_solve((self.factor, True), np.eye(len(self.y)))
        return leave_one_out(self.y, self.weights, inverse)


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return how far below `best` a value lies on average, shape (n,). Source: Jones, Schonlau, Welch 1998."""
    gain = best - mean
    return np.asarray(gain * ndtr(gain / deviation) + deviation * density(gain / deviation), np.float64)


def best_theta(X: Floats, y: Floats, added: Floats | float = 0.0) -> Floats:
    """Return the most probable logarithms of variance, lengths and noise, (d + 2,).

    `added` is a further covariance of y, (n, n).
    """
    n, gaps = X.shape[1], square_gaps(X)
    bounds = np.log([BOUNDS["variance"], *[BOUNDS["length"]] * n, BOUNDS["noise"]])
    priors = Priors.of([VARIANCE_PRIOR, *[LENGTH_PRIOR] * n, NOISE_PRIOR], bounds)
    return priors.most_probable(lambda theta: misfit(theta, gaps, y, added), steps=STEPS_MAX)


def misfit(
    theta: Floats,
    gaps: Floats,
    y: Floats,
    added: Floats | float = 0.0,
    *,
    correlation: Correlation = matern_with_slope,
) -> tuple[float, Floats]:
    """Return minus the logarithm of the marginal likelihood and its gradient (d + 2,).

    gaps: (d, n, n), as `square_gaps`. Source: Rasmussen and Williams 2006, equations 5.8 and 5.9.
    """
    variance, noise, scales = math.exp(theta[0]), math.exp(theta[-1]), np.exp(-2 * theta[1:-1])
    correlated, falling = correlation(np.sqrt(5 * np.tensordot(scales, gaps, 1)))
    kernel = variance * correlated
    solution = Solution.of(kernel + added + (noise + 1e-10) * np.eye(len(y)), y)
    slope = solution.slope
    by_length = variance * scales * (gaps.reshape(len(scales), -1) @ (slope * falling).ravel())
    gradient = np.concatenate([[np.sum(slope * kernel)], by_length, [noise * np.trace(slope)]])
    return solution.misfit + 0.5 * len(y) * math.log(2 * math.pi), gradient


def covariance_factor(theta: Floats, X: Floats, added: Floats | float = 0.0) -> Floats:
    """Return the lower Cholesky factor of the covariance of noisy values at X, (n, n)."""
    noise = math.exp(theta[-1]) + 1e-10
    kernel = kernel_between(theta, X, X) + added
    for jitter in (0.0, 1e-6, 1e-3):
        try:
            return np.asarray(cholesky(kernel + (noise + jitter) * np.eye(len(X)), lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            continue
    return np.asarray(cholesky(kernel + np.eye(len(X)), lower=True))


def kernel_between(theta: Floats, A: Floats, B: Floats) -> Floats:
    """Return the covariance of the noise-free values at A (n, d) and B (m, d), (n, m)."""
    return math.exp(theta[0]) * matern(distances(A, B, np.exp(theta[1:-1])))
