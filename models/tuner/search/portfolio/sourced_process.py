"""A Gaussian process whose mean is a weighted sum of the sources' expectations; the weights are learned with it."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gaussian_process import (
    LENGTH_PRIOR,
    NOISE_PRIOR,
    VARIANCE_PRIOR,
    best_theta,
    covariance_factor,
    kernel_between,
)

WEIGHT_DEVIATION = 0.8  # of a weight from its prior: a source may mean nothing, or the opposite
FITTED_MIN = 3  # values, of which fewer say nothing about lengths


@dataclass(frozen=True)
class SourcedProcess:
    """The posterior of values that are a weighted sum of the sources' expectations plus a Matern 5/2 process.

    The weights are normal around a prior, so their sum is a Gaussian process, too, unsure where sources disagree.
    Source: Rasmussen and Williams 2006, section 2.7, explicit basis functions.
    """

    theta: Floats
    prior: Floats  # expected weights, shape (n_sources,)
    X: Floats
    expected: Floats  # of the sources at X, shape (n_sources, n)
    factor: Floats
    weights: Floats

    @classmethod
    def fitted(cls, prior: Floats, X: Floats, expected: Floats, y: Floats) -> Self:
        """Fit the process to X (n, n_coordinates) in the unit cube, standardised expected (n_sources, n) and y (n,)."""
        of_weights = WEIGHT_DEVIATION**2 * expected.T @ expected
        rest = y - prior @ expected
        if len(y) < FITTED_MIN:
            theta = np.array([VARIANCE_PRIOR[0], *[LENGTH_PRIOR[0]] * X.shape[1], NOISE_PRIOR[0]])
        else:
            theta = best_theta(X, rest, of_weights)
        factor = covariance_factor(theta, X, of_weights)
        return cls(theta, prior, X, expected, factor, np.asarray(cho_solve((factor, True), rest)))

    def predict(self, X: Floats, expected: Floats) -> tuple[Floats, Floats]:
        """Return expected value and standard deviation without noise, each of shape (n,)."""
        cross = kernel_between(self.theta, self.X, X) + WEIGHT_DEVIATION**2 * self.expected.T @ expected
        explained = solve_triangular(self.factor, cross, lower=True, check_finite=False)
        before = math.exp(self.theta[0]) + WEIGHT_DEVIATION**2 * np.einsum("ij,ij->j", expected, expected)
        variance = before - np.einsum("ij,ij->j", explained, explained)
        return self.prior @ expected + self.weights @ cross, np.sqrt(np.maximum(variance, 1e-12))
