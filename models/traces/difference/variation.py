"""Intervals of differences of means of steps, that heed that a step resembles the one before it.

Neighbouring steps share their machine's state, so n of them tell no more than n (1 - r) / (1 + r) independent ones do,
r being their correlation at lag 1, corrected for its bias in short series. The interval is Welch's, of as many.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from crosswind.data.schema.prediction import Floats

TAIL = 0.05  # on either side of an interval
MOST_ALIKE = 0.9  # correlation that is reckoned with at most
USUAL = (0.5, 4.0)  # correlation that is expected before any step is seen, and how many steps outweigh it


@dataclass(frozen=True)
class Differences:
    """Differences of means with bounds, (n,), NaN where one step a side leaves them open."""

    value: Floats
    low: Floats
    high: Floats

    @property
    def is_sure(self) -> np.ndarray:
        """Return which differ from 0: those whose interval is without it, or that have none and are not 0."""
        is_open = np.isnan(self.low) & (self.value != 0)
        return np.asarray(is_open | (self.low > 0) | (self.high < 0))


def differences(first: Floats, second: Floats) -> Differences:
    """Return mean(second) - mean(first) by column with its 90 % interval; each is (n_steps, n)."""
    value = second.mean(axis=0) - first.mean(axis=0)
    counts = np.array([len(first), len(second)], np.float64)
    if counts.max() < 2:
        return Differences(value, np.full(len(value), np.nan), np.full(len(value), np.nan))
    alike = _alike(first, second)
    free = np.maximum(counts[:, None] * (1 - alike) / (1 + alike), 1.0)  # how many independent steps tell as much
    variance = _variances(first, second) / free
    left = np.maximum(free - 1, 1.0) if counts.min() > 1 else np.full_like(free, max(counts.max() - 1, 1.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        degrees = variance.sum(axis=0) ** 2 / (variance**2 / left).sum(axis=0)
    half = t.isf(TAIL, np.maximum(np.nan_to_num(degrees, nan=1.0), 1.0)) * np.sqrt(variance.sum(axis=0))
    return Differences(value, value - half, value + half)


def _variances(first: Floats, second: Floats) -> Floats:
    """Return the variance of steps on each side, (2, n); a side with one step has that of the other."""
    sides = [one.var(axis=0, ddof=1) if len(one) > 1 else None for one in (first, second)]
    of = [side if side is not None else other for side, other in zip(sides, reversed(sides), strict=True)]
    return np.asarray(np.stack([side for side in of if side is not None]))


def _alike(first: Floats, second: Floats) -> Floats:
    """Return the correlation of a step with the next one by column, over both sides, (n,), from 0 to MOST_ALIKE."""
    around = [one - one.mean(axis=0) for one in (first, second)]
    whole = np.sum([(one**2).sum(axis=0) for one in around], axis=0)
    shared = np.sum([(one[1:] * one[:-1]).sum(axis=0) for one in around], axis=0)
    ratio = np.divide(shared, whole, out=np.zeros_like(whole), where=whole > 0)
    count = np.mean([len(one) for one in around])
    unbiased = ratio + (1 + 4 * ratio) / count
    return np.asarray(np.clip((count * unbiased + USUAL[0] * USUAL[1]) / (count + USUAL[1]), 0.0, MOST_ALIKE))
