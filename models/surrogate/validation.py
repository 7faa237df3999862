"""Splits that put the question that a model will be asked: a later run, a group never seen, a larger scale."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

Mask: TypeAlias = NDArray[np.bool_]
Memory: TypeAlias = list[str] | list[float]


class Split(Protocol):
    """Divides rows into what is learned from and what is asked about, and tells which new rows put that question."""

    def pairs(self, X: pd.DataFrame) -> Iterator[tuple[Mask, Mask]]:
        """The rows learned from and those asked about, each (n_rows,), fold by fold. Raises: InvalidInputError."""
        ...

    def memory(self, X: pd.DataFrame) -> Memory:
        """Return what must be remembered of known rows to tell new ones from them. Raises: InvalidInputError."""
        ...

    def is_novel(self, memory: Memory, X: pd.DataFrame) -> Mask:
        """Return which rows of X put this question to one who knows only the remembered rows, shape (n_rows,)."""
        ...


@dataclass(frozen=True)
class TimeOrdered:
    """Each later part of the rows from all before it; every new row is later."""

    n_parts: int = 4

    def pairs(self, X: pd.DataFrame) -> Iterator[tuple[Mask, Mask]]:
        """All before and each part, of equal sizes; the first is only learned from."""
        parts = np.arange(len(X)) * self.n_parts // max(len(X), 1)
        for part in range(1, self.n_parts):
            yield parts < part, parts == part

    def memory(self, X: pd.DataFrame) -> Memory:  # noqa: ARG002  whatever is known is earlier
        """Nothing."""
        return []

    def is_novel(self, memory: Memory, X: pd.DataFrame) -> Mask:  # noqa: ARG002
        """Every row."""
        return np.ones(len(X), dtype=np.bool_)


@dataclass(frozen=True)
class LeaveGroupOut:
    """Some of a column's values (sites, systems, devices, workloads, cohorts) from all others; a new row has another.

    At most `n_folds` groups of values, made equal in rows, largest first: leaving every value out by itself costs more
    and says the same. Missing is a value.
    """

    column: str
    n_folds: int = 5

    def pairs(self, X: pd.DataFrame) -> Iterator[tuple[Mask, Mask]]:
        """The other folds and each fold."""
        folds = self.folds(X)
        for fold in np.unique(folds):
            yield folds != fold, folds == fold

    def memory(self, X: pd.DataFrame) -> Memory:
        """The column's values."""
        return sorted(set(_texts(X, self.column)))

    def is_novel(self, memory: Memory, X: pd.DataFrame) -> Mask:
        """Rows whose value is not known."""
        remembered = {str(value) for value in memory}
        return np.array([text not in remembered for text in _texts(X, self.column).tolist()], dtype=np.bool_)

    def folds(self, X: pd.DataFrame) -> NDArray[np.int64]:
        """Each row's fold, shape (n_rows,). Raises: InvalidInputError without the column."""
        values = _texts(X, self.column)
        counts = values.value_counts().sort_index().sort_values(ascending=False, kind="stable")
        sizes = np.zeros(min(self.n_folds, len(counts)), dtype=np.int64)
        fold_of: dict[str, int] = {}
        for value, count in counts.items():
            fold_of[str(value)] = int(np.argmin(sizes))
            sizes[fold_of[str(value)]] += int(count)
        return np.array([fold_of[value] for value in values], dtype=np.int64)


@dataclass(frozen=True)
class SmallToLarge:
    """The largest values of a number column (ranks, batch) from the small ones; a new row is larger than all known."""

    column: str
    test_ratio: float = 0.25  # share of the rows that is asked about, about
    gap: float = 1.0  # what is asked about is larger than this times the largest that is learned from

    def pairs(self, X: pd.DataFrame) -> Iterator[tuple[Mask, Mask]]:
        """One, unless all rows are of one scale: the rows at least `gap` smaller than the smallest large one."""
        scale = _numbers(X, self.column)
        present = scale[~np.isnan(scale)]
        if present.size == 0:
            return
        limit = float(np.quantile(present, 1 - self.test_ratio))
        if (present > limit).any():
            large = np.asarray(scale > limit, dtype=np.bool_)
            yield np.asarray(scale * self.gap < scale[large].min(), dtype=np.bool_) & ~large, large

    def memory(self, X: pd.DataFrame) -> Memory:
        """The largest value, if any is known."""
        scale = _numbers(X, self.column)
        return [float(np.nanmax(scale))] if np.isfinite(scale).any() else []

    def is_novel(self, memory: Memory, X: pd.DataFrame) -> Mask:
        """Rows of a larger scale than any known."""
        largest = max((float(value) for value in memory), default=-np.inf)
        return np.asarray(_numbers(X, self.column) > largest, dtype=np.bool_)


def _texts(X: pd.DataFrame, column: str) -> "pd.Series[str]":
    _check(X, column)
    return X[column].astype("string").fillna("")


def _numbers(X: pd.DataFrame, column: str) -> Floats:
    _check(X, column)
    return X[column].to_numpy(dtype=np.float64, na_value=np.nan)


def _check(X: pd.DataFrame, column: str) -> None:
    if column not in X.columns:
        raise InvalidInputError(f"the table has the columns {', '.join(map(str, X.columns))}, expected {column} too")
