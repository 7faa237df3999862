"""Quantiles of a prediction whose logarithm has a middle and a width."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.surrogate import LEVELS

MAD_TO_DEVIATION = 1.4826  # of normal errors


def scores(levels: "Sequence[float] | Floats") -> Floats:
    """Quantiles of the standard normal distribution at these levels, (n,); by SciPy, importing it takes longest."""
    return np.array([NormalDist().inv_cdf(float(level)) for level in levels])


SCORES: Floats = scores(LEVELS)


def log_normal(log_medians: Floats, log_deviations: Floats) -> Prediction:
    """Quantiles at LEVELS; both arguments have shape (n,)."""
    return monotone(LEVELS, np.exp(log_medians[:, None] + log_deviations[:, None] * SCORES))


def widened(log_medians: Floats, shape: Prediction, log_deviations: Floats) -> Prediction:
    """Quantiles around new medians: the distances of `shape` from its own, plus an independent normal error.

    log_medians and log_deviations have shape (n,). Independent errors add in squares, level by level.
    """
    logs = np.log(shape.values)
    distances = logs - np.log(shape.at(0.5))[:, None]
    normal = log_deviations[:, None] * SCORES
    return monotone(shape.levels, np.exp(log_medians[:, None] + np.sign(SCORES) * np.hypot(distances, normal)))


def robust_deviation(errors: Floats) -> float:
    """The standard deviation that normal errors of this median size around zero have."""
    return MAD_TO_DEVIATION * float(np.median(np.abs(errors))) if len(errors) else 0.0
