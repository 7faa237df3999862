"""Fewer points, same picture: a browser draws two thousand, and a spike must not be lost among them."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats

MOST_POINTS = 2000


def keep_extremes(values: Floats, most: int = MOST_POINTS) -> NDArray[np.int64]:
    """Places of at most `most` values, in order: the first, the last, and each bucket's smallest and largest."""
    length = len(values)
    if length <= most:
        return np.arange(length)
    edges = np.linspace(0, length, (most - 2) // 2 + 1).astype(np.int64)
    kept = {0, length - 1}
    for start, end in pairwise(edges):
        kept.update((start + _argmin(values[start:end]), start + _argmax(values[start:end])))
    return np.array(sorted(kept), dtype=np.int64)


def buckets(length: int, most: int = MOST_POINTS) -> NDArray[np.int64]:
    """The bucket of each of `length` rows when at most `most` buckets of equal size are wanted."""
    size = max(1, -(-length // most))
    return np.arange(length) // size


def _argmin(values: Floats) -> int:
    return int(np.argmin(np.where(np.isnan(values), np.inf, values)))


def _argmax(values: Floats) -> int:
    return int(np.argmax(np.where(np.isnan(values), -np.inf, values)))
