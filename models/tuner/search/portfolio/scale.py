"""Measurements on the scale on which the sources speak."""

import numpy as np
from scipy.stats import norm

from crosswind.data.schema.prediction import Floats
from crosswind.models.tuner.search.portfolio.prior import logarithms

WORTH = 3  # measurements that the sources' spread counts as


def standardised(objectives: Floats, expected: Floats, spread: float) -> Floats:
    """Objectives less what the sources expect on average, in units of their usual spread, shape (n,).

    expected: (n_sources, n) standardised values that the sources expect; spread: of the logarithm of their objectives.
    Without sources, objectives have mean 0 and deviation 1.
    """
    logs = logarithms(objectives)
    if len(logs) == 0:
        return logs
    squares = float(np.sum((logs - logs.mean()) ** 2))
    if len(expected) == 0:
        scale = float(np.sqrt(squares / len(logs)))
        return np.asarray((logs - logs.mean()) / (scale if scale > 0 else 1.0))
    scale = float(np.sqrt((WORTH * spread**2 + squares) / (WORTH + len(logs) - 1)))
    offset = float(np.mean(logs - scale * expected.mean(axis=0)))
    return np.asarray((logs - offset) / scale)


def censored(bounds: Floats) -> Floats:
    """Return what standardised values come to on average that are known to exceed these bounds, shape (n,).

    Source: Johnson, Kotz, Balakrishnan 1994, chapter 13, the normal distribution truncated from below.
    """
    capped = np.minimum(bounds, 8.0)
    return np.asarray(np.maximum(bounds, norm.pdf(capped) / norm.sf(capped)), np.float64)
