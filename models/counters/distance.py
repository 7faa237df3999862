"""Distance correlation: any dependence, also one that no ranks show."""

import numpy as np

from crosswind.data.schema.prediction import Floats

ROWS_MAX = 500  # of which distances are taken; more are thinned out evenly in the order given
ROWS_MIN = 4  # the correction divides by n - 3


def distance_correlations(columns: Floats, outcome: Floats) -> Floats:
    """Correlations of columns (n, m) with the outcome (n,), (m,): 0 if independent, 1 if linear.

    The square root of the bias-corrected square, which is below 0 about as often as above without dependence: then 0.
    NaN of a column without variance. Source: Székely and Rizzo 2013, the t-test of independence; U-centred distances.
    """
    thinned = np.unique(np.linspace(0, len(outcome) - 1, min(len(outcome), ROWS_MAX)).astype(int))
    if len(thinned) < ROWS_MIN:
        return np.full(columns.shape[1], np.nan)
    centred = _centred(outcome[thinned])
    own = float((centred * centred).sum())
    return np.array([_correlation(_centred(column[thinned]), centred, own) for column in columns.T])


def _correlation(one: Floats, outcome: Floats, own: float) -> float:
    spread = float((one * one).sum()) * own
    return float(np.sqrt(max((one * outcome).sum() / np.sqrt(spread), 0.0))) if spread > 0 else float(np.nan)


def _centred(values: Floats) -> Floats:
    """Distances less the means of their rows and columns, without bias; 0 on the diagonal."""
    count = len(values)
    apart = np.abs(values[:, None] - values)
    rows = apart.sum(axis=1) / (count - 2)
    centred: Floats = apart - rows[:, None] - rows + apart.sum() / ((count - 1) * (count - 2))
    np.fill_diagonal(centred, 0.0)
    return centred
