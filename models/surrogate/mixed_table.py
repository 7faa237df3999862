"""Tables of numbers and categories as points for distances and covariances."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.columns import Columns
from crosswind.models.surrogate.mixed_kernel import Codes, Points

REACH = 3.0  # standard deviations, or spans of the logarithms: from 8 to 64 ranks that leads to 32 000
LOG_RATIO_MIN = 4.0  # positive numbers whose largest is this many times the smallest are taken by logarithm


@dataclass(frozen=True)
class MixedTable:
    """Rules that turn a table's rows into points: positive numbers of a wide range by logarithm, all standardised.

    A missing number, or one that never varied, is 0; a missing or unseen category is -1. A number counts as no farther
    than REACH deviations beyond those learned from, one by logarithm than REACH times what they span: in a column that
    hardly varied, another value would be so far off that a slope learned from noise decides alone.
    """

    columns: Columns
    logged: tuple[bool, ...]  # a number column each
    means: Floats
    deviations: Floats
    lowest: Floats = field(default_factory=lambda: np.array(-np.inf))  # standardised, of each number column
    highest: Floats = field(default_factory=lambda: np.array(np.inf))

    @classmethod
    def of(cls, X: pd.DataFrame) -> Self:
        """Learn the rules from a table. Raises: InvalidInputError."""
        columns = Columns.of(X)
        raw = _numbers(columns, columns.matrix(X))
        logged = tuple(_spans_ratios(column) for column in raw.T)
        numbers = _logged(raw, logged)
        seen = ~np.isnan(numbers)
        counts = np.maximum(seen.sum(axis=0), 1)
        means = np.where(seen, numbers, 0.0).sum(axis=0) / counts
        deviations = np.sqrt(np.where(seen, (numbers - means) ** 2, 0.0).sum(axis=0) / counts)
        spread = np.where(deviations > 1e-9 * np.maximum(np.abs(means), 1), deviations, np.inf)
        standard = np.where(seen, (numbers - means) / spread, 0.0)
        lowest, highest = standard.min(axis=0, initial=0.0), standard.max(axis=0, initial=0.0)
        reach = REACH * np.where(logged, highest - lowest, 1.0)
        return cls(columns, logged, means, spread, lowest - reach, highest + reach)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The number columns' names, in their order."""
        return tuple(name for name, categories in self.columns.categories.items() if categories is None)

    @property
    def categories(self) -> tuple[str, ...]:
        """The category columns' names, in their order."""
        return tuple(name for name, categories in self.columns.categories.items() if categories is not None)

    def points(self, X: pd.DataFrame) -> Points:
        """The rows of a table as points. Raises: InvalidInputError on other columns."""
        matrix = self.columns.matrix(X)
        standard = (_logged(_numbers(self.columns, matrix), self.logged) - self.means) / self.deviations
        near = np.clip(standard, self.lowest, self.highest)
        return Points(np.where(np.isnan(standard), 0.0, near), _codes(self.columns, matrix))


def _spans_ratios(column: Floats) -> bool:
    present = column[~np.isnan(column)]
    return present.size > 0 and bool(present.min() > 0) and bool(present.max() >= LOG_RATIO_MIN * present.min())


def _numbers(columns: Columns, matrix: Floats) -> Floats:
    places = [place for name, place, width in _blocks(columns) if width is None]
    return matrix[:, places]


def _logged(numbers: Floats, logged: Sequence[bool]) -> Floats:
    positive = np.where(numbers > 0, numbers, np.nan)
    return np.where(np.array(logged, dtype=bool), np.log(positive), numbers)


def _codes(columns: Columns, matrix: Floats) -> Codes:
    codes = [_codes_of(matrix[:, place : place + width]) for _, place, width in _blocks(columns) if width is not None]
    return np.stack(codes, axis=1) if codes else np.empty((len(matrix), 0), dtype=np.int64)


def _codes_of(hot: Floats) -> Codes:
    if hot.shape[1] == 0:
        return np.full(len(hot), -1, dtype=np.int64)
    is_seen = np.nan_to_num(hot).sum(axis=1) > 0
    return np.where(is_seen, np.nan_to_num(hot).argmax(axis=1), -1).astype(np.int64)


def _blocks(columns: Columns) -> list[tuple[str, int, int | None]]:
    """Name, first place in the matrix and, for a category, number of places of each column."""
    blocks: list[tuple[str, int, int | None]] = []
    place = 0
    for name, categories in columns.categories.items():
        blocks.append((name, place, None if categories is None else len(categories)))
        place += 1 if categories is None else len(categories)
    return blocks
