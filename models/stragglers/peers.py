"""Comparison of each value with its peers: the median of all others."""

import numpy as np

from crosswind.data.schema.prediction import Floats


def others_median(values: Floats) -> Floats:
    """The median of the others for each value along the last axis, which has two at least.

    The median without one value is the mean of two of the three middle values, which depend on its side only.
    """
    count = values.shape[-1]
    half = count // 2
    if count % 2:
        low, middle, high = _middle(values, (max(half - 1, 0), half, min(half + 1, count - 1)))
        below, at = values < middle, values == middle
        medians = np.where(below, (middle + high) / 2, (low + middle) / 2)
        return np.asarray(np.where(at, (low + high) / 2, medians))
    low, high = _middle(values, (half - 1, half))
    return np.asarray(np.where(values <= low, high, low))


def lags(values: Floats) -> Floats:
    """The difference of each value from the median of the others along the last axis."""
    return values - others_median(values)


def _middle(values: Floats, places: tuple[int, ...]) -> list[Floats]:
    ordered = np.partition(values, sorted(set(places)), axis=-1)
    return [ordered[..., place : place + 1] for place in places]
