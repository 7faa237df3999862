"""The space-filling start of a search."""

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration
from crosswind.models.tuner.search.pool import Pool

START = 5  # configurations of the start
DESIGNS = 50  # random starts, of which the most representative is taken
REPRESENTED = 300  # configurations that a start is compared with


def representative(pool: Pool, seed: int) -> list[Configuration]:
    """Return START random configurations: of DESIGNS sets, the one distributed most like the whole pool.

    Corners, which a largest-distance design seeks, are rarely good. Source: Mak and Joseph 2018, "Support points".
    """
    rng = np.random.default_rng(seed)
    whole = pool.points[rng.permutation(len(pool))[:REPRESENTED]]
    designs = [rng.permutation(len(pool))[:START] for _ in range(DESIGNS)]
    best = min(designs, key=lambda design: _energy_distance(pool.points[design], whole))
    return [pool.configurations[index] for index in best]


def _energy_distance(points: Floats, whole: Floats) -> float:
    """Return twice the mean distance to the whole less that among the points; smallest for equal distributions."""
    if len(points) == 0:
        return 0.0
    return float(2 * _distances(points, whole).mean() - _distances(points, points).mean())


def _distances(some: Floats, others: Floats) -> Floats:
    """Return the distances between points, (n_some, n_others), by NumPy alone: a study's first trials need no SciPy."""
    return np.asarray(np.sqrt(np.square(some[:, None] - others).sum(axis=2)), np.float64)
