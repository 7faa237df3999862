"""Splits for validation by kinds of extrapolation: a later run, an unseen group, a larger scale."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

CAUTIOUS_DEVIATION = 0.4  # of log seconds: one in ten is off by more than a factor of two
Mask: TypeAlias = NDArray[np.bool_]
Memory: TypeAlias = list[str] | list[float]


class Split(Protocol):
    """Splits rows into training and test rows, and finds new rows that are novel in the same way as the test rows."""

    @property
    def deviation(self) -> float:
        """Standard deviation of log seconds of a new group about a prediction, where no group was ever tested."""
        ...

    def groups(self, X: pd.DataFrame) -> NDArray[np.int64]:
        """Return the group of each row, (n_rows,): within one, errors are alike. Raises: InvalidInputError."""
        ...

    def pairs(self, X: pd.DataFrame) -> Iterator[tuple[Mask, Mask]]:
        """Masks of training and of test rows, (n_rows,) each, fold by fold. Raises: InvalidInputError."""
        ...

    def memory(self, X: pd.DataFrame) -> Memory:
        """Return the values of known rows that `is_novel` compares with. Raises: InvalidInputError."""
        ...

    def is_novel(self, memory: Memory, X: pd.DataFrame) -> Mask:
        """Return the rows of X, (n_rows,), that are novel against the remembered values."""
        ...


@dataclass(frozen=True)
class TimeOrdered:
    """Parts of the rows in the order of time, predicted from all before them; every new row is later."""

    n_parts: int = 4
    deviation: float = CAUTIOUS_DEVIATION

    def groups(self, X: pd.DataFrame) -> NDArray[np.int64]:
        """Every row by itself."""
        return np.arange(len(X))

    def pairs(self, X: pd.DataFrame) -> Iterator[tuple[Mask, Mask]]:
        """All rows before a part, and the part; parts are of equal size, and the first is only trained on."""
        parts = np.arange(len(X)) * self.n_parts // max(len(X), 1)
        for part in range(1, self.n_parts):
            yield parts < part, parts == part

    def memory(self, X: pd.DataFrame) -> Memory:  # noqa: ARG002  known rows are always earlier
        """An empty list."""
        return []

    def is_novel(self, memory: Memory, X: pd.DataFrame) -> Mask:  # noqa: ARG002
        """All rows."""
        return np.ones(len(X), dtype=np.bool_)


@dataclass(frozen=True)
class LeaveGroupOut:
    """Groups of a column's values (sites, systems, devices, workloads, cohorts), predicted from all others.

    At most `n_folds` groups of values, balanced in rows, largest first: leaving every value out by itself costs more
    and shows the same. Missing is a value. A new row with an unseen value is novel.
    """

    column: str
    n_folds: int = 5
    deviation: float = CAUTIOUS_DEVIATION

    def groups(self, X: pd.DataFrame) -> NDArray[np.int64]:
        """The values' numbers."""
        return _numbered(_texts(X, self.column))

    def pairs(self, X: pd.DataFrame) -> Iterator[tuple[Mask, Mask]]:
        """The other folds, and a fold."""
        folds = self.folds(X)
        for fold in np.unique(folds):
            yield folds != fold, folds == fold

    def memory(self, X: pd.DataFrame) -> Memory:
        """The column's values."""
        return sorted(set(_texts(X, self.column)))

    def is_novel(self, memory: Memory, X: pd.DataFrame) -> Mask:
        """Rows with a value that is not remembered."""
        remembered = {str(value) for value in memory}
        return np.array([text not in remembered for text in _texts(X, self.column).tolist()], dtype=np.bool_)

    def folds(self, X: pd.DataFrame) -> NDArray[np.int64]:
        """Folds of the rows, shape (n_rows,). Raises: InvalidInputError without the column."""
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
    """The largest values of a number column (ranks, batch), predicted from smaller ones; a larger row is novel.

    So is a row of a scale that `rare_ratio` of the rows reach at most: a handful says little about a whole scale.
    """

    column: str
    test_ratio: float = 0.25  # share of test rows, about
    gap: float = 1.0  # ratio between the smallest test value and the largest training value, at least
    rare_ratio: float = 0.05  # of the rows, those that do not make a scale known; none of 20 or fewer
    deviation: float = CAUTIOUS_DEVIATION

    def groups(self, X: pd.DataFrame) -> NDArray[np.int64]:
        """The scales' numbers."""
        return _numbered(_texts(X, self.column))

    def pairs(self, X: pd.DataFrame) -> Iterator[tuple[Mask, Mask]]:
        """One pair, unless all rows are of one scale: the rows at least `gap` smaller than the smallest large one."""
        scale = _numbers(X, self.column)
        present = scale[~np.isnan(scale)]
        if present.size == 0:
            return
        limit = float(np.quantile(present, 1 - self.test_ratio))
        if (present > limit).any():
            large = np.asarray(scale > limit, dtype=np.bool_)
            yield np.asarray(scale * self.gap < scale[large].min(), dtype=np.bool_) & ~large, large

    def memory(self, X: pd.DataFrame) -> Memory:
        """The largest value that more than the rare rows reach, if any is known."""
        scale = _numbers(X, self.column)
        present = scale[np.isfinite(scale)]
        return [float(np.quantile(present, 1 - self.rare_ratio, method="higher"))] if present.size else []

    def is_novel(self, memory: Memory, X: pd.DataFrame) -> Mask:
        """Rows of a larger scale than the one remembered."""
        largest = max((float(value) for value in memory), default=-np.inf)
        return np.asarray(_numbers(X, self.column) > largest, dtype=np.bool_)


def _numbered(values: "pd.Series[str]") -> NDArray[np.int64]:
    return np.asarray(pd.factorize(values)[0], dtype=np.int64)


def _texts(X: pd.DataFrame, column: str) -> "pd.Series[str]":
    _check(X, column)
    return X[column].astype("string").fillna("")


def _numbers(X: pd.DataFrame, column: str) -> Floats:
    _check(X, column)
    return X[column].to_numpy(dtype=np.float64, na_value=np.nan)


def _check(X: pd.DataFrame, column: str) -> None:
    if column not in X.columns:
        raise InvalidInputError(f"the table has the columns {', '.join(map(str, X.columns))}, expected {column} too")
