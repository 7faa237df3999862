"""Columns against the excess of runs: partial rank correlation, effect, p by permutation, and bootstrap replicates.

Source: Spearman's rho of the residuals of both ranks after a regression on drift and cohorts (partial Spearman).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import scipy.stats

from crosswind.data.schema.prediction import Floats
from crosswind.models.association.bootstrap import Replicates, UnitSums, interval
from crosswind.models.association.design import Design
from crosswind.models.association.permutation import by_draws, by_moments, deviations, draws_for

FAR = 6.0  # robust deviations: the excess of a run further away is clipped to that
LOG_RATIO_MAX = 50.0  # the residual of a column may be so small that its slope means nothing
NOTHING = 1e-10  # of a column's own squares: rounding errors where trends and cohorts explain all of it


@dataclass(frozen=True)
class Association:
    """Associations of m columns, each (m,); NaN where trends and cohorts leave nothing of a column to compare.

    `slope` is log seconds by unit of dose. Intervals are of 90 %; `replicates` are the rho of bootstrap replicates,
    (n_replicates, m).
    """

    rho: Floats
    rho_low: Floats
    rho_high: Floats
    slope: Floats
    slope_low: Floats
    slope_high: Floats
    p: Floats
    replicates: Floats

    def ratios(self, place: int) -> tuple[float, float, float]:
        """Return the factor of time by unit of dose of one column, and its interval."""
        slopes = np.array([self.slope[place], self.slope_low[place], self.slope_high[place]])
        ratio, low, high = np.exp(np.clip(slopes, -LOG_RATIO_MAX, LOG_RATIO_MAX)).tolist()
        return ratio, low, high

    def rhos(self, place: int) -> tuple[float, float, float]:
        """The correlation of one column, and its interval."""
        return float(self.rho[place]), float(self.rho_low[place]), float(self.rho_high[place])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Join the columns of one or more parts."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts], axis=-1) for field in fields(cls)))


@dataclass(frozen=True)
class Outcome:
    """Residuals of the excess of n runs, in log seconds and as ranks, (n,) each, in the order of time."""

    design: Design
    log: Floats
    ranks: Floats

    @classmethod
    def of(cls, design: Design, log_excess: Floats) -> Self:
        """Make them of log excess (n,), in the order of runs that the design was made of."""
        excess = log_excess[design.order]
        left = design.without(np.column_stack([_clipped(excess), scipy.stats.rankdata(excess)]))
        return cls(design, left[:, 0], left[:, 1])


def associate(outcome: Outcome, chunks: Iterable[tuple[Floats, Floats]], columns: int, *, seed: int = 0) -> Association:
    """Associate columns with the outcome; they come in one or more chunks of ranks and doses, (n, m) each, no gaps.

    Rows are in the order of time. columns: the number tested together, here and elsewhere, which sets how small a p
    must be resolved.
    """
    design, draws = outcome.design, draws_for(len(outcome.log), columns)
    sums, p = [], []
    for ranks, doses in chunks:
        x = _left(design, ranks)
        d = x if doses is ranks else _left(design, doses)
        by_law = by_moments(x.T @ outcome.ranks, deviations(design, x, outcome.ranks))
        # Residual drift makes the far tail of the draws a little too thin: the larger of both p counts.
        p.append(np.maximum(by_law, by_draws(design, x, outcome.ranks, draws, seed=seed)) if draws else by_law)
        sums.append(UnitSums.of(x, outcome.ranks, d, outcome.log))
    joined = UnitSums(*(_stacked(sums, field.name) for field in fields(UnitSums)))
    replicates = Replicates.of(joined, seed=seed)
    bands = (*interval(replicates.rho), *interval(replicates.slope))
    low, high, slope_low, slope_high = (np.where(np.isnan(joined.rho), np.nan, band) for band in bands)
    return Association(*(joined.rho, low, high, joined.slope, slope_low, slope_high), np.concatenate(p), replicates.rho)


def _left(design: Design, columns: Floats) -> Floats:
    """Return the residuals of columns (n, m); exactly 0 where they are rounding errors."""
    left = design.without(columns)
    return np.where((left**2).sum(axis=0) > NOTHING * (columns**2).sum(axis=0), left, 0.0)


def _stacked(sums: Iterable[UnitSums], name: str) -> Floats:
    parts = [getattr(chunk, name) for chunk in sums]
    return parts[0] if name == "yy" else np.concatenate(parts, axis=1)


def _clipped(log_excess: Floats) -> Floats:
    middle = np.median(log_excess)
    far = FAR * scipy.stats.median_abs_deviation(log_excess, scale="normal")
    return np.clip(log_excess, middle - far, middle + far) if far > 0 else log_excess
