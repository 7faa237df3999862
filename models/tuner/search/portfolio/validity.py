"""The chance of a configuration to be valid, from what failed on the target and on its sources."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gaussian_process import Process
from crosswind.models.tuner.search.portfolio.prior import KnownSource

LENGTH = 0.7  # of coordinates in the unit cube; failures end abruptly, so little is smoothed
NOISE = 0.05
ROWS_MAX = 300
CHANCE_MIN = 0.01  # nothing is ruled out for ever


def chance_of_success(X: Floats, valid: Floats, failed: Floats, sources: Sequence[KnownSource]) -> Floats:
    """Between 0 and 1 for each point of X, shape (n,); 1 where nothing failed anywhere.

    The sources' mean expectation is corrected by a process of where the target did otherwise.
    Source: Rasmussen and Williams 2006, section 6.5, least-squares classification.
    """
    telling = [source for source in sources if len(source.failed)]
    if len(failed) == 0 and not telling:
        return np.ones(len(X))
    every = np.vstack([X, valid[-ROWS_MAX:], failed[-ROWS_MAX:]])
    expected = np.ones(len(every))
    for source in telling:
        expected -= (1 - _share(every, source.X[-ROWS_MAX:], source.failed)) / len(sources)
    own, n_valid = every[len(X) :], len(valid[-ROWS_MAX:])
    came = np.concatenate([np.ones(n_valid), np.zeros(len(own) - n_valid)])
    correction = _process(own, came - expected[len(X) :]).predict(X)[0] if len(own) else 0.0
    return np.asarray(np.clip(expected[: len(X)] + correction, CHANCE_MIN, 1.0), np.float64)


def _share(points: Floats, valid: Floats, failed: Floats) -> Floats:
    """Expected share of success around each point."""
    labels = np.concatenate([np.zeros(len(valid)), -np.ones(len(failed))])
    return np.clip(1 + _process(np.vstack([valid, failed]), labels).predict(points)[0], 0.0, 1.0)


def _process(X: Floats, y: Floats) -> Process:
    theta = np.log([1.0, *[LENGTH] * X.shape[1], NOISE])
    return Process.given(theta, X, y)
