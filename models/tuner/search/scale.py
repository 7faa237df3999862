"""Scales on which objectives are modelled: where they keep one sign, effects and noise are relative."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtr

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.normal import density

SPREAD_WEIGHT = 3  # measurements that the sources' spread counts as


@dataclass(frozen=True)
class Scale:
    """A rising map of values: the logarithm of positive ones, its mirror image for negative ones, else none."""

    sign: int

    @classmethod
    def of(cls, values: Floats) -> Self:
        """Return the scale for these values: sign 1 where all are positive, -1 where all are negative, else 0."""
        return cls(int(np.all(values > 0)) - int(np.all(values < 0)))

    def forward(self, values: Floats) -> Floats:
        """Return the values on the scale."""
        return np.asarray(self.sign * np.log(self.sign * values) if self.sign else values, np.float64)

    def back(self, values: Floats) -> Floats:
        """Return the values of which these are the places on the scale."""
        return np.asarray(self.sign * np.exp(self.sign * values) if self.sign else values, np.float64)


def logarithms(objectives: Sequence[float] | Floats) -> Floats:
    """Return the logarithms of objectives that are all positive, else the objectives, shape (n,)."""
    values = np.asarray(objectives, np.float64)
    return np.log(values) if len(values) and np.all(values > 0) else values


def standardised(objectives: Sequence[float] | Floats) -> Floats:
    """Return objectives, or their logarithms, with mean 0 and standard deviation 1, shape (n,)."""
    logs = logarithms(objectives)
    if len(logs) == 0:
        return logs
    spread = float(logs.std())
    return np.asarray((logs - logs.mean()) / (spread if spread > 0 else 1.0), np.float64)


def relative_to_sources(objectives: Floats, expected: Floats, spread: float) -> Floats:
    """Return objectives less the sources' mean expectation, in units of their usual spread, shape (n,).

    Args:
        objectives: Measured, shape (n,).
        expected: Standardised values that the sources expect, shape (n_sources, n).
        spread: Of the logarithm of the sources' objectives.
    """
    logs = logarithms(objectives)
    if len(logs) == 0 or len(expected) == 0:
        return standardised(objectives)
    squares = float(np.sum((logs - logs.mean()) ** 2))
    scale = float(np.sqrt((SPREAD_WEIGHT * spread**2 + squares) / (SPREAD_WEIGHT + len(logs) - 1)))
    offset = float(np.mean(logs - scale * expected.mean(axis=0)))
    return np.asarray((logs - offset) / scale)


def censored(bounds: Floats) -> Floats:
    """Return the expectations of standardised values that exceed these bounds, shape (n,).

    Source: Johnson, Kotz, Balakrishnan 1994, chapter 13, the normal distribution truncated from below.
    """
    capped = np.minimum(bounds, 8.0)
    return np.asarray(np.maximum(bounds, density(capped) / ndtr(-capped)), np.float64)
