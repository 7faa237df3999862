"""A Gaussian process over configurations of which some were measured several times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gp import Misfit, Priors, Solution, distances, matern, matern_with_slope, square_gaps

# Bounds, and means and standard deviations of normal priors, of the logarithms of: the variance of standardised
# values, the lengths (mean grows with the number of coordinates), the variance of each configuration's own part, which
# neighbours do not share, the variance of the noise.
VARIANCE_BOUNDS, VARIANCE_PRIOR = (np.log(0.05), np.log(20.0)), (0.0, 1.0)
LENGTH_BOUNDS, LENGTH_PRIOR = (np.log(0.05), np.log(50.0)), (np.log(0.5), 1.0)
ROUGHNESS_BOUNDS, ROUGHNESS_PRIOR = (np.log(1e-6), np.log(2.0)), (np.log(0.003), 1.5)
NOISE_BOUNDS, NOISE_DEVIATION = (np.log(1e-8), np.log(1e2)), 2.0
JITTER = 1e-9
STEPS_MAX = 60
BLOCK = 2048  # points predicted at once, so that intermediate results stay in the cache
DIFFERENCE = 1e-3  # of the logarithms, for second derivatives
CURVATURE_MIN = 0.25  # no hyper-parameter is less certain than its widest prior


@dataclass(frozen=True)
class Measured:
    """Standardised means of n configurations, the counts of their measurements, and the scatter of the repeats.

    `variances` are the configurations' relative noise variances, 1 by default; `squares` is the sum of squared
    deviations from the means over these; `degrees` the number of repeats beyond the first.
    """

    points: Floats  # (n, d)
    means: Floats  # (n,)
    counts: Floats  # (n,)
    variances: Floats  # (n,)
    squares: float
    degrees: int

    @cached_property
    def gaps(self) -> Floats:
        """Squared differences, one matrix a coordinate, (d, n, n)."""
        return square_gaps(self.points)


@dataclass(frozen=True)
class RepeatedProcess:
    """Matern 5/2 with one length a coordinate, a part of each configuration's own, and normal noise a measurement.

    Means and scatter of the repeats are sufficient statistics of the values, so repeats separate the noise from a rough
    objective, and the misfit of the process separates both where nothing was repeated. Hyper-parameters are the most
    probable ones; `draws` varies them by their curvature. Notation as in `gp`. Source: Ankenman, Nelson and Staum 2010,
    "Stochastic kriging".
    """

    measured: Measured
    centre: float  # of the values
    spread: float  # of the values, in one standardised unit
    theta: Floats  # logarithms of variance, lengths, roughness and noise, (d + 3,)
    curvature: Floats  # (d + 3, d + 3)

    @classmethod
    def of(
        cls,
        points: Floats,
        groups: Sequence[Floats],
        *,
        expected_noise: float,
        variances: Floats | None = None,
    ) -> Self:
        """Fit groups of values, one group for each of the points (n, d) in the unit cube.

        `expected_noise` is the standard deviation, in the values' unit, that the noise is drawn to.
        Raises: InvalidInputError without a value, or with one that is not finite.
        """
        _check(points, groups)
        means = np.array([float(np.mean(group)) for group in groups])
        centre, spread = float(means.mean()), float(means.std()) or 1.0
        measured = _standardised(points, [(group - centre) / spread for group in groups], variances)
        priors = _priors(points.shape[1], 2 * np.log(expected_noise / spread))

        def misfit(theta: Floats) -> tuple[float, Floats]:
            return _misfit(measured, theta)

        theta = priors.most_probable(misfit, steps=STEPS_MAX)
        return cls(measured, centre, spread, theta, _curvature(misfit, priors, theta))

    @property
    def noise(self) -> float:
        """Standard deviation of one measurement, in the values' unit, of an average configuration."""
        return self.spread * float(np.exp(self.theta[-1] / 2))

    @property
    def noise_degrees(self) -> float:
        """The number of independent repeats that would give the noise with the same certainty."""
        variance = float(np.linalg.inv(self.curvature)[-1, -1])
        return max(2.0 / variance, 1.0)  # the logarithm of chi-squared / k has variance close to 2 / k

    def predict(self, X: Floats) -> tuple[Floats, Floats]:
        """Mean and deviation of the noise-free value of untried configurations at the points X (m, d), (m,) each."""
        posterior = self._posterior(self.theta)
        blocks = [X[start : start + BLOCK] for start in range(0, max(len(X), 1), BLOCK)]
        mean, variance = np.hstack([self._block(posterior, block) for block in blocks])
        return self.centre + self.spread * mean, self.spread * np.sqrt(np.maximum(variance, 1e-12))

    def at_measured(self) -> tuple[Floats, Floats]:
        """Mean (n,) and covariance (n, n) of the noise-free values of the measured configurations."""
        mean, covariance = self._joint(self.theta)
        return self.centre + self.spread * mean, self.spread**2 * covariance

    def draws(self, count: int, seed: int, *, settings: int = 24) -> Floats:
        """Draw noise-free values of the measured configurations, (about `count`, n), over several hyper-parameters."""
        rng = np.random.default_rng(seed)
        root = np.linalg.cholesky(np.linalg.inv(self.curvature))
        low, high = _bounds(len(self.theta) - 3).T
        rows = []
        for _ in range(settings):
            theta = np.clip(self.theta + root @ rng.standard_normal(len(self.theta)), low, high)
            mean, covariance = self._joint(theta)
            factor = cholesky(covariance + 1e-8 * np.eye(len(mean)), lower=True, check_finite=False)
            rows.append(mean + rng.standard_normal((-(-count // settings), len(mean))) @ factor.T)
        return np.asarray(self.centre + self.spread * np.vstack(rows), np.float64)

    def believing(self, X: Floats) -> "RepeatedProcess":
        """The process as if the points X (m, d) had been measured once, at their expected values."""
        if len(X) == 0:
            return self
        measured, means = self.measured, (self.predict(X)[0] - self.centre) / self.spread
        ones = np.ones(len(X))
        believed = replace(
            measured,
            points=np.vstack([measured.points, X]),
            means=np.concatenate([measured.means, means]),
            counts=np.concatenate([measured.counts, ones]),
            variances=np.concatenate([measured.variances, ones]),
        )
        return replace(self, measured=believed)

    def _block(self, posterior: "_Posterior", X: Floats) -> Floats:
        """Standardised mean and variance at the points X (m, d), (2, m)."""
        cross = np.exp(self.theta[0]) * matern(distances(X, self.measured.points, posterior.lengths))
        explained = cross @ posterior.inverse_root.T
        prior = np.exp(self.theta[0]) + np.exp(self.theta[-2])
        return np.stack([cross @ posterior.weights, prior - np.einsum("ij,ij->i", explained, explained)])

    def _joint(self, theta: Floats) -> tuple[Floats, Floats]:
        posterior = self._posterior(theta)
        explained = solve_triangular(posterior.root, posterior.signal, lower=True, check_finite=False)
        return posterior.signal @ posterior.weights, posterior.signal - explained.T @ explained

    def _posterior(self, theta: Floats) -> "_Posterior":
        return _Posterior.of(self.measured, theta)


@dataclass(frozen=True)
class _Posterior:
    """The posterior under one setting of the hyper-parameters."""

    lengths: Floats  # (d,)
    signal: Floats  # (n, n), without noise
    root: Floats  # (n, n), lower Cholesky factor with noise
    weights: Floats  # (n,)

    @cached_property
    def inverse_root(self) -> Floats:
        """The inverse of the lower root, (n, n): products with it are faster than solving, for very many points."""
        return np.asarray(solve_triangular(self.root, np.eye(len(self.root)), lower=True), np.float64)

    @classmethod
    def of(cls, measured: Measured, theta: Floats) -> Self:
        lengths = np.exp(theta[1:-2])
        signal = np.exp(theta[0]) * matern(distances(measured.points, measured.points, lengths))
        signal[np.diag_indices(len(signal))] += np.exp(theta[-2])
        noise = np.exp(theta[-1]) * measured.variances / measured.counts
        root = cholesky(signal + np.diag(noise + JITTER), lower=True, check_finite=False)
        return cls(lengths, signal, root, np.asarray(cho_solve((root, True), measured.means), np.float64))


def _priors(n_coordinates: int, noise_mean: float) -> Priors:
    length = (LENGTH_PRIOR[0] + 0.5 * np.log(max(n_coordinates, 1)), LENGTH_PRIOR[1])
    rows = [VARIANCE_PRIOR, *[length] * n_coordinates, ROUGHNESS_PRIOR, (noise_mean, NOISE_DEVIATION)]
    return Priors.of(rows, _bounds(n_coordinates))


def _bounds(n_coordinates: int) -> Floats:
    return np.array([VARIANCE_BOUNDS, *[LENGTH_BOUNDS] * n_coordinates, ROUGHNESS_BOUNDS, NOISE_BOUNDS])


def _misfit(measured: Measured, theta: Floats) -> tuple[float, Floats]:
    """Return minus the log likelihood of means and scatter, up to a constant, and its gradient (d + 3,)."""
    squared = np.exp(-2 * theta[1:-2])
    correlation, falling = matern_with_slope(np.sqrt(5 * np.einsum("j,jab->ab", squared, measured.gaps)))
    signal, rough = np.exp(theta[0]) * correlation, np.exp(theta[-2])
    noise = np.exp(theta[-1]) * measured.variances / measured.counts
    solution = Solution.of(signal + np.diag(rough + noise + JITTER), measured.means)
    slope = solution.slope
    scatter = measured.squares / np.exp(theta[-1])
    by_length = np.exp(theta[0]) * squared * np.einsum("ab,jab->j", slope * falling, measured.gaps)
    by_noise = float(np.diag(slope) @ noise) + 0.5 * (measured.degrees - scatter)
    gradient = np.array([float((slope * signal).sum()), *by_length, rough * float(np.trace(slope)), by_noise])
    return solution.misfit + 0.5 * (measured.degrees * float(theta[-1]) + scatter), gradient


def _curvature(misfit: Misfit, priors: Priors, theta: Floats) -> Floats:
    """Return the precision of the hyper-parameters (p, p): second derivatives at theta, made positive."""

    def gradient(at: Floats) -> Floats:
        return misfit(at)[1] + priors.penalty(at)[1]

    steps = DIFFERENCE * np.eye(len(theta))
    rows = np.array([(gradient(theta + step) - gradient(theta - step)) / (2 * DIFFERENCE) for step in steps])
    values, vectors = np.linalg.eigh(0.5 * (rows + rows.T))
    return np.asarray((vectors * np.maximum(values, CURVATURE_MIN)) @ vectors.T, np.float64)


def _standardised(points: Floats, groups: Sequence[Floats], variances: Floats | None) -> Measured:
    given = np.ones(len(groups)) if variances is None else np.asarray(variances, np.float64)
    squares = [float(np.sum((group - group.mean()) ** 2)) for group in groups]
    counts = np.array([len(group) for group in groups], dtype=np.float64)
    degrees = int(counts.sum()) - len(groups)
    means = np.array([float(group.mean()) for group in groups])
    return Measured(points, means, counts, given, float(np.sum(squares / given)), degrees)


def _check(points: Floats, groups: Sequence[Floats]) -> None:
    if len(groups) == 0 or len(points) != len(groups):
        raise InvalidInputError(f"{len(points)} points have {len(groups)} groups of values, expected one each")
    for index, group in enumerate(groups):
        if len(group) == 0 or not np.all(np.isfinite(group)):
            raise InvalidInputError(f"group {index} holds {list(group)}, expected finite numbers, at least one")
