"""Quantiles of an objective from its median and the errors of such medians."""

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.conformal import conformal_quantile
from crosswind.models.surrogate.log_normal import scores
from crosswind.models.surrogate.surrogate import LEVELS

GUESSES = 200  # equally likely errors in place of a normal distribution


def quantiles_of(errors: Floats) -> Floats:
    """The errors' quantiles at LEVELS, shape (n_levels,): conformal ones, for the next error, from two errors on."""
    return np.sort([conformal_quantile(errors, level) for level in LEVELS])


def quantiles_of_groups(errors: Floats, groups: NDArray[np.int64], deviation: float) -> Floats:
    """Quantiles at LEVELS of an error in a group that is still to come, shape (n_levels,).

    errors and groups: (n,), errors of one group being alike. Every group weighs the same, and so does one of which
    nothing is known but this deviation: with few groups, or none, the band is about as wide as a guess.
    Source: Dunn, Wasserman, Ramdas 2023, "Distribution-free prediction sets for two-layer hierarchical models", with a
    normal distribution in place of the infinite error that stands for the group to come.
    """
    _, place, counts = np.unique(groups, return_inverse=True, return_counts=True)
    guesses = deviation * scores((np.arange(GUESSES) + 0.5) / GUESSES)
    values = np.concatenate([errors, guesses])
    weights = np.concatenate([1 / counts[place.ravel()], np.full(GUESSES, 1 / GUESSES)])
    order = np.argsort(values)
    shares = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    return np.asarray(np.interp(LEVELS, shares, values[order]), dtype=np.float64)


def spread(medians: Floats, log_quantiles: Floats, *, scales: Floats | float = 1.0) -> Prediction:
    """Quantiles exp(scale x log quantile) times each median; `scales` is one number, or one a row."""
    stretched = np.outer(np.broadcast_to(np.asarray(scales, dtype=np.float64), medians.shape), log_quantiles)
    return monotone(LEVELS, medians[:, None] * np.exp(stretched))
