"""Analogues: a conditional distribution from the outcomes of earlier runs that looked alike."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.scores import mean_pinball
from crosswind.models.surrogate.conformal import conformal_corrections
from crosswind.models.surrogate.surrogate import LEVELS

Places = NDArray[np.int64]
ROWS_MIN = 8
WIDTHS = (0.4, 0.8, 1.6, 1e3)  # of a feature's spread; the last ignores the feature
WEIGHT_MIN = 1e-3  # of a run that looks nothing alike, against the most alike: no forecast is ever certain
SAME_GROUP = 2.0  # weight of a run of the same cohort, against one of another
RIDGE = 1.0  # prior of no effect, in rows
ROUNDS = 2


@dataclass(frozen=True)
class Analogues:
    """Quantiles at LEVELS of y given features: a line through all rows, spread by the misses of those most alike.

    The width of likeness in each feature is chosen on the rows themselves, each predicted from all others, by pinball
    loss; so are the final corrections (conformal, on those left-out predictions).
    Sources: Nadaraya 1964 and Watson 1964 (weights by likeness); Romano, Patterson, Candes 2019 (corrections).
    """

    features: Floats = field(repr=False)  # (n_rows, n_features), in spreads from the middle
    misses: Floats = field(repr=False)  # (n_rows,), rising: rows are in their order
    order: Places = field(repr=False)  # of the rows as they were learned from
    groups: tuple[str, ...] = field(repr=False)
    middle: Floats
    spread: Floats
    line: Floats  # (1 + n_features,)
    widths: tuple[float, ...]
    corrections: Floats  # (n_levels,)

    @classmethod
    def of(cls, features: Floats, y: Floats, groups: Sequence[str]) -> Self:
        """Learns from features (n_rows, n_features) and y (n_rows,); NaN is the median. Raises: InvalidInputError."""
        if len(y) < ROWS_MIN:
            raise InvalidInputError(f"{len(y)} earlier runs are too few to learn from, expected at least {ROWS_MIN}")
        if features.shape[0] != len(y) or len(groups) != len(y):
            raise InvalidInputError(
                f"{len(y)} earlier runs, {len(groups)} groups, features of shape {features.shape}: expected a row for "
                "each run"
            )
        middle, spread = np.nan_to_num(np.nanmedian(features, axis=0)), _spread(features)
        scaled = np.nan_to_num((features - middle) / spread)
        line = _line(scaled, y)
        misses = y - line[0] - scaled @ line[1:]
        order = np.argsort(misses)
        misses, scaled, groups = misses[order], scaled[order], tuple(groups[row] for row in order)
        widths = _chosen_widths(scaled, misses, groups)
        errors = misses[:, None] - _left_out(scaled, misses, groups, widths)
        corrections = conformal_corrections(errors, LEVELS)
        return cls(scaled, misses, order, groups, middle, spread, line, widths, corrections)

    def predict(self, features: Floats, group: str) -> Floats:
        """Quantiles of y at LEVELS of one row of features, shape (n_levels,)."""
        row = np.nan_to_num((features - self.middle) / self.spread)
        same = np.array([other == group for other in self.groups])
        weights = _weights(_distances(row[None, :], self.features, self.widths), same[None, :])
        spread: Floats = np.sort(_quantiles(self.misses, weights)[0] + self.corrections)
        return spread + float(self.line[0] + row @ self.line[1:])

    def left_out(self) -> Floats:
        """Quantiles of y for every row learned from, predicted without that row; shape (n_rows, n_levels)."""
        centre = self.line[0] + self.features @ self.line[1:]
        left_out = _left_out(self.features, self.misses, self.groups, self.widths) + self.corrections
        quantiles: Floats = np.sort(left_out + centre[:, None], axis=1)[np.argsort(self.order)]
        return quantiles


def _line(features: Floats, y: Floats) -> Floats:
    """Ridge regression, shape (1 + n_features,), the intercept first."""
    design = np.column_stack([np.ones(len(y)), features])
    penalty = RIDGE * np.diag([0.0] + [1.0] * features.shape[1])
    return np.asarray(np.linalg.solve(design.T @ design + penalty, design.T @ y), dtype=np.float64)


def _chosen_widths(features: Floats, misses: Floats, groups: Sequence[str]) -> tuple[float, ...]:
    """One width a feature, by turns, from the second one on."""
    chosen: tuple[float, ...] = (WIDTHS[1],) * features.shape[1]
    for _ in range(ROUNDS):
        for index in range(len(chosen)):
            tried: list[tuple[float, ...]] = [(*chosen[:index], width, *chosen[index + 1 :]) for width in WIDTHS]
            losses = [mean_pinball(_left_out(features, misses, groups, widths), misses, LEVELS) for widths in tried]
            chosen = tried[int(np.argmin(losses))]
    return chosen


def _left_out(features: Floats, misses: Floats, groups: Sequence[str], widths: tuple[float, ...]) -> Floats:
    """Quantiles of every row's miss from all other rows, shape (n_rows, n_levels)."""
    codes = np.unique(np.array(groups), return_inverse=True)[1]
    distances = _distances(features, features, widths)
    np.fill_diagonal(distances, np.inf)
    weights = _weights(distances, codes[:, None] == codes[None, :])
    np.fill_diagonal(weights, 0.0)
    return _quantiles(misses, weights)


def _spread(features: Floats) -> Floats:
    spread = np.nan_to_num(np.nanstd(features, axis=0))
    return np.where(spread > 0, spread, 1.0)


def _distances(rows: Floats, learned: Floats, widths: tuple[float, ...]) -> Floats:
    """Squared distances in widths, shape (n_rows, n_learned)."""
    a, b = rows / np.array(widths), learned / np.array(widths)
    squares: Floats = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * a @ b.T
    return squares


def _weights(distances: Floats, same: NDArray[np.bool_]) -> Floats:
    """Return the weights of learned rows for each row, (n_rows, n_learned); far from all, the nearest weigh most."""
    nearest = distances.min(axis=1, keepdims=True)
    weights: Floats = np.exp((nearest - distances) / 2) * np.where(same, SAME_GROUP, 1.0) + WEIGHT_MIN
    return weights


def _quantiles(values: Floats, weights: Floats) -> Floats:
    """Weighted quantiles at LEVELS of values that rise, one row a row of weights; linear between the values."""
    last = len(values) - 1
    middle = np.cumsum(weights, axis=1) - weights / 2
    middle /= weights.sum(axis=1, keepdims=True)
    quantiles = np.empty((len(weights), len(LEVELS)))
    rows = np.arange(len(weights))
    for column, level in enumerate(LEVELS):
        above = np.clip((middle < level).sum(axis=1), 1, last)
        low, high = middle[rows, above - 1], middle[rows, above]
        share = np.clip((level - low) / np.maximum(high - low, 1e-300), 0, 1)
        quantiles[:, column] = (1 - share) * values[above - 1] + share * values[above]
    return quantiles
