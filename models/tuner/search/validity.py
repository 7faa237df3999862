"""The chance of a configuration to be valid, from the measured study alone."""

import numpy as np
from scipy.stats import norm

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gaussian_process import Process


def chance_of_success(X: Floats, valid: Floats, invalid: Floats) -> Floats:
    """Return each point's chance to be valid, shape (n,), from points that were and were not; 1 without any failure.

    A second process learns the labels 1 and 0, so where validity ends need not look like how the objective changes.
    Source: Rasmussen and Williams 2006, section 6.5, least-squares classification.
    """
    if len(invalid) == 0:
        return np.ones(len(X))
    labels = np.concatenate([np.ones(len(valid)), np.zeros(len(invalid))])
    mean, spread = float(labels.mean()), max(float(labels.std()), 1e-3)
    expected, deviation = Process.fitted(np.vstack([valid, invalid]), (labels - mean) / spread).predict(X)
    return np.asarray(norm.cdf((expected - (0.5 - mean) / spread) / deviation), np.float64)
