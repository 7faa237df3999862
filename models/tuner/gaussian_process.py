"""A Gaussian process over few measurements, and what it says about untried points."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from crosswind.data.prediction import Floats

VARIANCE_BOUNDS = (0.05, 20.0)  # of standardised objectives
LENGTH_BOUNDS = (0.05, 50.0)  # of coordinates in the unit cube
NOISE_BOUNDS = (1e-5, 1.0)
# Log-normal priors (mean and standard deviation of the logarithm) keep a handful of points from deciding alone.
VARIANCE_PRIOR = (0.0, 1.0)
LENGTH_PRIOR = (0.0, 1.0)
NOISE_PRIOR = (-5.0, 1.5)
STEPS_MAX = 60


@dataclass(frozen=True)
class Surface:
    """The posterior of a standardised objective: Matern 5/2 with one length a coordinate, plus measurement noise.

    Source: Rasmussen and Williams 2006, chapter 5; maximum a posteriori hyper-parameters.
    """

    regressor: GaussianProcessRegressor

    @classmethod
    def of(cls, X: Floats, y: Floats) -> Self:
        """Fits hyper-parameters and posterior; X: (n, n_coordinates) in the unit cube, y: (n,) standardised."""
        kernel = _kernel(X.shape[1])
        start = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)

        def loss(theta: Floats) -> tuple[float, Floats]:
            value, gradient = start.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)
            distance = (theta - means) / deviations
            return 0.5 * float(distance @ distance) - value, distance / deviations - gradient

        means, deviations = _priors(X.shape[1])
        # scikit-learn's own search warns whenever a length reaches its bound, which here only says "no influence".
        found = minimize(
            loss, kernel.theta, jac=True, method="L-BFGS-B", bounds=kernel.bounds, options={"maxiter": STEPS_MAX}
        )
        return cls(GaussianProcessRegressor(kernel.clone_with_theta(found.x), optimizer=None).fit(X, y))

    def believing(self, X: Floats) -> "Surface":
        """The posterior as if the points X had been measured at their expected values (kriging believer)."""
        known = self.regressor
        if len(X) == 0:
            return self
        points, values = np.vstack([known.X_train_, X]), np.concatenate([known.y_train_, self.mean(X)])
        return Surface(GaussianProcessRegressor(known.kernel_, optimizer=None).fit(points, values))

    def mean(self, X: Floats) -> Floats:
        """Expected objective, shape (n,)."""
        return np.asarray(self.regressor.predict(X), dtype=np.float64)

    def expected_improvement(self, X: Floats) -> Floats:
        """How far below the best expected value so far a point lies on average, shape (n,); noise does not count.

        Source: Jones, Schonlau, Welch 1998.
        """
        mean, deviation = self._noise_free(X)
        gain = self.mean(self.regressor.X_train_).min() - mean
        return np.asarray(gain * norm.cdf(gain / deviation) + deviation * norm.pdf(gain / deviation), np.float64)

    def chance_above(self, X: Floats, threshold: float) -> Floats:
        """Probability that the noise-free objective exceeds a threshold, shape (n,)."""
        mean, deviation = self._noise_free(X)
        return np.asarray(norm.cdf((mean - threshold) / deviation), np.float64)

    def _noise_free(self, X: Floats) -> tuple[Floats, Floats]:
        mean, deviation = self.regressor.predict(X, return_std=True)
        noise = self.regressor.kernel_.k2.noise_level
        return mean, np.sqrt(np.maximum(deviation**2 - noise, 1e-12))


def chance_of_success(X: Floats, valid: Floats, invalid: Floats) -> Floats:
    """How likely each point is to be valid, shape (n,), from points that were and were not; 1 without any failure.

    A second process learns the labels 1 and 0, so where validity ends need not look like how the objective changes.
    Source: Rasmussen and Williams 2006, section 6.5, least-squares classification.
    """
    if len(invalid) == 0:
        return np.ones(len(X))
    labels = np.concatenate([np.ones(len(valid)), np.zeros(len(invalid))])
    mean, spread = float(labels.mean()), max(float(labels.std()), 1e-3)
    surface = Surface.of(np.vstack([valid, invalid]), (labels - mean) / spread)
    return surface.chance_above(X, (0.5 - mean) / spread)


def _kernel(n_coordinates: int) -> Kernel:
    lengths = np.full(n_coordinates, np.exp(LENGTH_PRIOR[0]))
    return ConstantKernel(1.0, VARIANCE_BOUNDS) * Matern(lengths, LENGTH_BOUNDS, nu=2.5) + WhiteKernel(
        np.exp(NOISE_PRIOR[0]), NOISE_BOUNDS
    )


def _priors(n_coordinates: int) -> tuple[Floats, Floats]:
    """Means and standard deviations of the log hyper-parameters, in the kernel's order."""
    rows = np.array([VARIANCE_PRIOR, *[LENGTH_PRIOR] * n_coordinates, NOISE_PRIOR])
    return rows[:, 0], rows[:, 1]
