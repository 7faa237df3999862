"""The rate at which a clock drifts from another, by the differences that both show at shared moments.

Source: Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 1968.
"""

import numpy as np
from numpy.typing import NDArray

FEWEST, MOST = 20, 400  # shared moments: fewer show no rate, and of more some are chosen evenly
SURE = 6.0  # times its standard error, that a rate must be: the errors of neighbouring moments resemble each other
LARGEST = 5e-4  # clocks of computers keep within 100 parts in a million: more is no drift
SIGMA = 1.4826  # standard deviation by median absolute deviation, of normal errors
MEDIAN_LOSS = 1.25  # standard error of a median by that of a mean

Floats = NDArray[np.float64]


def drift(times: Floats, differences: Floats) -> tuple[float, float]:
    """Return a rate, and the time about which it turns; (0, 0) where none is sure.

    `times` and `differences` are (n,) ns, NaN at moments that are not shared. A rate is sure if it is many times its
    standard error, and moves the clock over the capture by more than the differences scatter.
    """
    shared = np.isfinite(times) & np.isfinite(differences)
    t, d = times[shared], differences[shared]
    if len(t) < FEWEST:
        return 0.0, 0.0
    chosen = np.argsort(t)[np.unique(np.linspace(0, len(t) - 1, min(len(t), MOST)).astype(np.int64))]
    t, d = t[chosen], d[chosen]
    rows, columns = np.triu_indices(len(t), 1)
    apart = t[columns] - t[rows] > 0
    if not apart.any():
        return 0.0, 0.0
    rate = float(np.median((d[columns] - d[rows])[apart] / (t[columns] - t[rows])[apart]))
    rest = d - rate * t
    scatter = SIGMA * float(np.median(np.abs(rest - np.median(rest))))
    error = MEDIAN_LOSS * scatter / (np.sqrt(len(t)) * float(t.std()))
    is_sure = SURE * error < abs(rate) < LARGEST and abs(rate) * (t[-1] - t[0]) > 2 * scatter
    return (rate, float(t.mean())) if is_sure else (0.0, 0.0)
