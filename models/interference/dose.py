"""Dose response of delay to the share of a run that a neighbour was there."""

import numpy as np
import scipy.stats

from crosswind.data.schema.answers.effects import Dose
from crosswind.data.schema.prediction import Floats

EXPOSED_MIN = 9  # three runs in each tercile
TERCILES = (1 / 3, 2 / 3)


def dose_response(share: Floats, log_excess: Floats) -> Dose | None:
    """Dose response to shares (n_runs,) of residual log excess (n_runs,); None where shares do not make terciles.

    Source: Kendall's tau-b of tercile and excess, which is the trend test of Jonckheere and Terpstra with ties.
    """
    exposed = share > 0
    if exposed.sum() < EXPOSED_MIN:
        return None
    tercile = np.searchsorted(np.quantile(share[exposed], TERCILES), share[exposed])
    delayed = log_excess[exposed]
    if len(np.unique(tercile)) < 3:
        return None
    without = float(log_excess[~exposed].mean()) if not exposed.all() else 0.0
    low, middle, high = (float(np.exp(delayed[tercile == number].mean() - without)) for number in range(3))
    trend = scipy.stats.kendalltau(tercile, delayed, alternative="greater")
    return Dose(low, middle, high, float(np.nan_to_num(trend.pvalue, nan=1.0)))
