"""A Gaussian process that is quick enough to be fitted for every source and asked about tens of thousands of points."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.stats import norm

from crosswind.data.schema.prediction import Floats

# Log-normal priors (mean and standard deviation of the logarithm) keep a handful of points from deciding alone.
VARIANCE_PRIOR = (0.0, 1.0)
LENGTH_PRIOR = (0.0, 1.0)
NOISE_PRIOR = (-5.0, 1.5)
BOUNDS = {"variance": (0.05, 20.0), "length": (0.05, 50.0), "noise": (1e-5, 1.0)}
STEPS_MAX = 40
BLOCK = 4096  # points asked about at once, so that the kernel stays in the processor's cache


@dataclass(frozen=True)
class Process:
    """The posterior of standardised values: Matern 5/2 with one length a coordinate, plus measurement noise.

    Source: Rasmussen and Williams 2006, chapters 2, 4 and 5; maximum a posteriori hyper-parameters.
    """

    theta: Floats  # logarithms of variance, lengths and noise, shape (n_coordinates + 2,)
    X: Floats
    y: Floats
    factor: Floats  # lower Cholesky factor of the covariance of y
    weights: Floats  # the covariance's inverse times y

    @classmethod
    def fitted(cls, X: Floats, y: Floats) -> Self:
        """Fits hyper-parameters and posterior; X: (n, n_coordinates) in the unit cube, y: (n,) standardised."""
        return cls.given(best_theta(X, y), X, y)

    @classmethod
    def given(cls, theta: Floats, X: Floats, y: Floats) -> Self:
        """The posterior of these values under known hyper-parameters."""
        factor = covariance_factor(theta, X)
        return cls(theta, X, y, factor, np.asarray(cho_solve((factor, True), y)))

    @property
    def expected_best(self) -> float:
        """The smallest expected value at the points it learned from."""
        return float(self.predict(self.X)[0].min())

    def believing(self, X: Floats) -> "Process":
        """The posterior as if the points X had been measured at their expected values (kriging believer)."""
        if len(X) == 0:
            return self
        return Process.given(self.theta, np.vstack([self.X, X]), np.concatenate([self.y, self.predict(X)[0]]))

    def predict(self, X: Floats) -> tuple[Floats, Floats]:
        """Expected value and standard deviation without noise, each of shape (n,)."""
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
        """Return the expectation of each known value without it, and the deviation with noise, each of shape (n,).

        Source: Rasmussen and Williams 2006, equation 5.12.
        """
        inverse = cho_solve((self.factor, True), np.eye(len(self.y)))
        diagonal = np.diag(inverse)
        return self.y - self.weights / diagonal, np.sqrt(1 / diagonal)


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return how far below `best` a value lies on average, shape (n,). Source: Jones, Schonlau, Welch 1998."""
    gain = best - mean
    return np.asarray(gain * norm.cdf(gain / deviation) + deviation * norm.pdf(gain / deviation), np.float64)


def best_theta(X: Floats, y: Floats, beside: Floats | float = 0.0) -> Floats:
    """Most probable logarithms of variance, lengths and noise, shape (n_coordinates + 2,).

    `beside` is a covariance of y that is known, shape (n, n).
    """
    squares = np.array([(column[:, None] - column[None]) ** 2 for column in X.T]).reshape(X.shape[1], len(X), len(X))
    prior = np.array([VARIANCE_PRIOR, *[LENGTH_PRIOR] * X.shape[1], NOISE_PRIOR])
    bounds = [BOUNDS["variance"], *[BOUNDS["length"]] * X.shape[1], BOUNDS["noise"]]

    def loss(theta: Floats) -> tuple[float, Floats]:
        value, gradient = _misfit(theta, squares, y, beside)
        distance = (theta - prior[:, 0]) / prior[:, 1]
        return value + 0.5 * float(distance @ distance), gradient + distance / prior[:, 1]

    optimum = minimize(
        loss, prior[:, 0], jac=True, method="L-BFGS-B", bounds=np.log(bounds), options={"maxiter": STEPS_MAX}
    )
    return np.asarray(optimum.x, np.float64)


def _misfit(theta: Floats, squares: Floats, y: Floats, beside: Floats | float = 0.0) -> tuple[float, Floats]:
    """Negative logarithm of the marginal likelihood and its gradient. Source: ibid., equations 5.8 and 5.9."""
    variance, noise, scales = math.exp(theta[0]), math.exp(theta[-1]), np.exp(-2 * theta[1:-1])
    n = len(y)
    distance = np.sqrt(5 * np.tensordot(scales, squares, 1))
    decay = variance * np.exp(-distance)
    kernel = decay * (1 + distance + distance**2 / 3)
    try:
        factor = cholesky(kernel + beside + (noise + 1e-10) * np.eye(n), lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return 1e25, np.zeros_like(theta)
    weights = cho_solve((factor, True), y, check_finite=False)
    inner = cho_solve((factor, True), np.eye(n), check_finite=False) - np.outer(weights, weights)
    # d kernel / d log length = 5/3 (1 + distance) decay * square / length^2
    shared = inner * decay * (1 + distance) * (5 / 3)
    lengths = 0.5 * scales * (squares.reshape(len(scales), -1) @ shared.ravel())
    gradient = np.concatenate([[0.5 * np.sum(inner * kernel)], lengths, [0.5 * noise * np.trace(inner)]])
    return float(0.5 * y @ weights + np.log(np.diag(factor)).sum() + 0.5 * n * math.log(2 * math.pi)), gradient


def covariance_factor(theta: Floats, X: Floats, beside: Floats | float = 0.0) -> Floats:
    """Lower Cholesky factor of the covariance of noisy values at X, shape (n, n)."""
    noise = math.exp(theta[-1]) + 1e-10
    kernel = kernel_between(theta, X, X) + beside
    for jitter in (0.0, 1e-6, 1e-3):
        try:
            return np.asarray(cholesky(kernel + (noise + jitter) * np.eye(len(X)), lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            continue
    return np.asarray(cholesky(kernel + np.eye(len(X)), lower=True))


def kernel_between(theta: Floats, A: Floats, B: Floats) -> Floats:
    """Covariance of the noise-free values, shape (len(A), len(B))."""
    scale = np.exp(-theta[1:-1]) * math.sqrt(5)
    a, b = A * scale, B * scale
    square = np.sum(a**2, 1)[:, None] + np.sum(b**2, 1)[None] - 2 * a @ b.T
    distance = np.sqrt(np.maximum(square, 0, out=square), out=square)
    return np.asarray(math.exp(theta[0]) * np.exp(-distance) * (1 + distance + distance * distance / 3))
