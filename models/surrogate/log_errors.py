"""Quantiles of an objective from its median and the errors of such medians."""

import numpy as np

from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.conformal import conformal_quantile
from crosswind.models.surrogate.surrogate import LEVELS


def quantiles_of(errors: Floats) -> Floats:
    """The errors' quantiles at LEVELS, shape (n_levels,): conformal ones, for the next error, from two errors on."""
    return np.sort([conformal_quantile(errors, level) for level in LEVELS])


def spread(medians: Floats, log_quantiles: Floats, *, scales: Floats | float = 1.0) -> Prediction:
    """Quantiles exp(scale x log quantile) times each median; `scales` is one number, or one a row."""
    stretched = np.outer(np.broadcast_to(np.asarray(scales, dtype=np.float64), medians.shape), log_quantiles)
    return monotone(LEVELS, medians[:, None] * np.exp(stretched))
