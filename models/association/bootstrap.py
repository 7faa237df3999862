"""Bootstrap of a ranking: intervals, and the share of replicates in which a column is among the first."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.association.design import summing

REPLICATES = 400
UNITS_MAX = 1000  # single runs, or of more runs as many stretches of them
FIRST = 10
INTERVAL = (0.05, 0.95)


@dataclass(frozen=True)
class UnitSums:
    """Sums of products over the units that are drawn, each (n_units, m); `yy` is (n_units, 1).

    x is a column's ranks, y the outcome's, d its dose and l the outcome in log seconds.
    """

    xx: Floats
    xy: Floats
    yy: Floats
    dd: Floats
    dl: Floats

    @classmethod
    def of(cls, x: Floats, y: Floats, d: Floats, log: Floats) -> Self:
        """Sum residuals in the order of time: x and d (n, m), y and log (n,)."""
        units = min(len(y), UNITS_MAX)
        stretches = summing(np.arange(len(y)) * units // len(y))

        def sums(columns: Floats) -> Floats:
            totals: Floats = stretches @ columns
            return totals

        y_column, log_column = y[:, None], log[:, None]
        return cls(sums(x * x), sums(x * y_column), sums(y_column**2), sums(d * d), sums(d * log_column))

    @property
    def rho(self) -> Floats:
        """The correlation of all rows, (m,)."""
        return _ratio(self.xy.sum(axis=0), np.sqrt(self.xx.sum(axis=0) * self.yy.sum(axis=0)))

    @property
    def slope(self) -> Floats:
        """Log seconds by unit of dose, of all rows, (m,)."""
        return _ratio(self.dl.sum(axis=0), self.dd.sum(axis=0))


@dataclass(frozen=True)
class Replicates:
    """Correlations and slopes of bootstrap replicates, each (n_replicates, m)."""

    rho: Floats
    slope: Floats

    @classmethod
    def of(cls, sums: UnitSums, *, seed: int, replicates: int = REPLICATES) -> Self:
        """Draws as many units as there are, with replacement; NaN where nothing varies."""
        units = len(sums.yy)
        drawn = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), size=replicates).astype(float)
        rho = _ratio(drawn @ sums.xy, np.sqrt((drawn @ sums.xx) * (drawn @ sums.yy)))
        return cls(rho, _ratio(drawn @ sums.dl, drawn @ sums.dd))


def stability(rho: Floats) -> Floats:
    """The share of replicates (n_replicates, m) in which a column's correlation is among the strongest, (m,).

    Those are the first ten or, of fewer than twenty columns, the first half.
    """
    first = min(FIRST, math.ceil(rho.shape[1] / 2))
    strength = np.nan_to_num(np.abs(rho), nan=-1.0)
    places = np.argsort(np.argsort(-strength, axis=1, kind="stable"), axis=1)
    return np.asarray((places < first).mean(axis=0), np.float64)


def interval(replicates: Floats) -> tuple[Floats, Floats]:
    """The 90 % percentile interval of each column, (m,) and (m,)."""
    filled = np.where(np.isnan(replicates), 0.0, replicates)
    low, high = np.quantile(filled, INTERVAL, axis=0)
    return low, high


def _ratio(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.where(below > 0, above / below, np.nan)
    return ratio
