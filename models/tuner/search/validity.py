"""The chance of a configuration to be valid, from configurations that succeeded and failed.

Two estimates, for two tuners: `chance_of_success` learns how far failures reach from the study alone and gives a
probability; `expected_success` begins with what failed in prior studies and only corrects that, over a fixed reach.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gaussian_process import Process

LENGTH = 0.7  # of coordinates in the unit cube; failures end abruptly, so little is smoothed
NOISE = 0.05
ROWS_MAX = 300
CHANCE_MIN = 0.01  # nothing is ruled out for ever


def chance_of_success(X: Floats, valid: Floats, invalid: Floats) -> Floats:
    """Return each point's chance to be valid, shape (n,); 1 without any failure.

    A process learns the labels 1 and 0, so where validity ends need not look like how the objective changes.
    Source: Rasmussen and Williams 2006, section 6.5, least-squares classification.

    Args:
        X: Points, shape (n, n_coordinates).
        valid: Points that were measured, shape (n_valid, n_coordinates).
        invalid: Points that failed, shape (n_invalid, n_coordinates).
    """
    if len(invalid) == 0:
        return np.ones(len(X))
    labels = np.concatenate([np.ones(len(valid)), np.zeros(len(invalid))])
    mean, spread = float(labels.mean()), max(float(labels.std()), 1e-3)
    expected, deviation = Process.fitted(np.vstack([valid, invalid]), (labels - mean) / spread).predict(X)
    return np.asarray(ndtr((expected - (0.5 - mean) / spread) / deviation), np.float64)


def expected_success(X: Floats, valid: Floats, invalid: Floats, sources: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Return each point's expected success, between CHANCE_MIN and 1, shape (n,); 1 where nothing failed anywhere.

    The sources' mean expectation is corrected by a process of how the target deviated from it.

    Args:
        X, valid, invalid: As for `chance_of_success`, of the target.
        sources: Valid and invalid points of each source.
    """
    if len(invalid) == 0 and not any(len(failed) for _, failed in sources):
        return np.ones(len(X))
    points = np.vstack([X, valid[-ROWS_MAX:], invalid[-ROWS_MAX:]])
    expected = np.ones(len(points))
    for succeeded, failed in sources:
        if len(failed):
            expected -= (1 - _share(points, succeeded[-ROWS_MAX:], failed)) / len(sources)
    own, n_valid = points[len(X) :], len(valid[-ROWS_MAX:])
    success = np.concatenate([np.ones(n_valid), np.zeros(len(own) - n_valid)])
    correction = _process(own, success - expected[len(X) :]).predict(X)[0] if len(own) else 0.0
    return np.asarray(np.clip(expected[: len(X)] + correction, CHANCE_MIN, 1.0), np.float64)


def _share(points: Floats, valid: Floats, invalid: Floats) -> Floats:
    """Return the expected share of success around each point."""
    labels = np.concatenate([np.zeros(len(valid)), -np.ones(len(invalid))])
    return np.clip(1 + _process(np.vstack([valid, invalid]), labels).predict(points)[0], 0.0, 1.0)


def _process(X: Floats, y: Floats) -> Process:
    theta = np.log([1.0, *[LENGTH] * X.shape[1], NOISE])
    return Process.given(theta, X, y)
