"""The Pareto front: the measurements that no other beats in every objective; lower is better in all of them."""

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

MARGIN_MIN = 0.5  # of the front's extent, by which the reference lies behind it: few rows rarely reach its true ends
NO_EXTENT = 1.0  # where the front has no extent in an objective


def on_front(values: Floats) -> NDArray[np.bool_]:
    """Return whether each row of (n, n_objectives) is on the front, (n,); of equal rows the first is.

    Raises: InvalidInputError for numbers that are not finite.
    """
    _check(values)
    is_on = np.zeros(len(values), dtype=bool)
    front = np.empty((0, values.shape[1]))
    # In lexical order a row can only be beaten by one before it.
    for index in np.lexsort(values.T[::-1]):
        row = values[index]
        if not np.any(np.all(front <= row, axis=1)):
            is_on[index] = True
            front = np.vstack([front, row])
    return is_on


def reference(front: Floats, everything: Floats) -> Floats:
    """Return the point behind the front from which volume is counted, (n_objectives,).

    It lies behind the front's worst value by the front's extent over one less than its rows, so that the ends count as
    much as a gap within, and by half the extent at least; of a single point, by the extent of everything measured.
    Source: Ishibuchi et al. 2018, "How to specify a reference point in hypervolume calculation".
    """
    worst, extent = front.max(axis=0), np.ptp(front, axis=0)
    extent = np.where(extent > 0, extent, np.ptp(everything, axis=0))
    margin = max(1 / max(len(front) - 1, 1), MARGIN_MIN)
    return np.asarray(worst + margin * np.where(extent > 0, extent, NO_EXTENT), np.float64)


def _check(values: Floats) -> None:
    if values.ndim != 2 or not np.all(np.isfinite(values)):
        raise InvalidInputError(f"values have shape {values.shape}, expected (n, n_objectives) of finite numbers")
