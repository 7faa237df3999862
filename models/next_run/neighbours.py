"""The distance of a question from past cohorts, and the nearest of these."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gp import square_distances
from crosswind.models.next_run.describe import SETTING, SYSTEM, WORKLOAD, Kinds, with_columns
from crosswind.models.surrogate.columns import Columns
from crosswind.models.surrogate.surrogate import NotFittedError

Places: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

MISMATCH: Mapping[str, float] = {WORKLOAD: 4.0, SYSTEM: 2.0}  # so many standard deviations is another name
DEVIATION_MIN = 0.5  # doublings
OTHER_MISMATCH = 1.0  # another text, or a value that only one of the two has
USUAL = 0.95  # share of the rows that have a neighbour within distance 1
ROWS_MAX = 4000  # from which the usual distance is taken; more are thinned out evenly


@dataclass(frozen=True)
class Scale:
    """The measure of a column of numbers: its standard deviation, of doublings where all are positive."""

    is_logarithmic: bool
    deviation: float

    @classmethod
    def of(cls, values: "pd.Series[float]") -> Self:
        """The scale of a column, at least a doubling's half; 1 where it never varied."""
        numbers = pd.to_numeric(values, errors="coerce").dropna().to_numpy(np.float64)
        if not np.all(numbers > 0):
            return cls(False, float(np.std(numbers)) or 1.0)
        return cls(True, max(float(np.std(np.log2(numbers))), DEVIATION_MIN) if len(set(numbers)) > 1 else 1.0)


@dataclass
class Neighbours:
    """Distances between rows, in a unit within which 95 % of those learned from have a neighbour of their workload.

    Numbers differ by their standard deviations, texts by `MISMATCH` of them.
    """

    _columns: Columns | None = field(default=None, init=False, repr=False)
    _scales: tuple[Scale, ...] = field(default=(), init=False, repr=False)  # of every column; texts need none
    _points: Floats = field(default_factory=lambda: np.zeros((0, 0)), init=False, repr=False)
    _unit: float = field(default=1.0, init=False)
    _workloads: list[str] = field(default_factory=list, init=False, repr=False)  # of the rows; none without that column

    def fit(self, table: pd.DataFrame) -> Self:
        """Learns scales and the unit of distance from the rows of past cohorts."""
        self._columns = Columns.of(table)
        self._scales = tuple(Scale.of(table[name]) for name in table.columns)
        self._points = self._placed(table)
        thinned = slice(None, None, 1 + len(table) // ROWS_MAX)
        self._workloads = _workloads(table)
        names = np.array(self._workloads) if self._workloads else np.zeros(len(table))
        self._unit = _usual(self._points[thinned], names[thinned])
        return self

    @property
    def kinds(self) -> Kinds:
        """The kinds of the columns learned from; none before `fit`."""
        return {} if self._columns is None else self._columns.categories

    def distances(self, table: pd.DataFrame) -> Floats:
        """Distances of each row to each row learned from, shape (n_rows, n_learned). Raises: NotFittedError."""
        return np.sqrt(self._squares(table)) / self._unit

    def _squares(self, table: pd.DataFrame) -> Floats:
        squares = square_distances(self._placed(table), self._points)
        strange = [name for name in map(str, table.columns) if name.startswith(SETTING) and name not in self.kinds]
        if strange:
            squares += OTHER_MISMATCH**2 * table[strange].notna().sum(axis=1).to_numpy()[:, None]
        return squares

    def nearest(self, table: pd.DataFrame, count: int) -> tuple[Places, Floats]:
        """Places of the `count` nearest rows and their distances, both (n_rows, count).

        Those of the row's own workload come first, however near others are; of each, the nearest first.
        """
        squares = self._squares(table)
        order = np.empty((len(table), min(count, squares.shape[1])), dtype=np.int64)
        for rows, own, others in self._by_workload(table):
            first = _smallest(squares[rows], own, count)
            more = _smallest(squares[rows], others, count - first.shape[1])
            order[rows] = np.concatenate([first, more], axis=1)
        return order, np.sqrt(np.take_along_axis(squares, order, axis=1)) / self._unit

    def _by_workload(self, table: pd.DataFrame) -> Iterator[tuple[Mask, Places, Places]]:
        """Yield, a workload, the mask of the rows that ask about it, its places among those learned, and the others."""
        learned, asked = np.array(self._workloads, dtype=str), np.array(_workloads(table), dtype=str)
        every = np.arange(len(self._points))
        if not len(learned) or not len(asked):
            yield np.ones(len(table), dtype=np.bool_), every, every[:0]
            return
        for workload in np.unique(asked):
            is_own = learned == workload
            yield asked == workload, every[is_own], every[~is_own]

    def _placed(self, table: pd.DataFrame) -> Floats:
        if self._columns is None:
            raise NotFittedError("Neighbours was asked before fit")
        matrix = self._columns.matrix(with_columns(table, list(self._columns.categories)))
        blocks, column = [np.empty((len(table), 0))], 0
        for (name, categories), scale in zip(self._columns.categories.items(), self._scales, strict=True):
            width = 1 if categories is None else len(categories)
            values = matrix[:, column : column + width]
            blocks.append(_numbers(values, scale) if categories is None else _texts(values, MISMATCH.get(name)))
            column += width
        return np.concatenate(blocks, axis=1)


def _workloads(table: pd.DataFrame) -> list[str]:
    return [str(name) for name in table[WORKLOAD]] if WORKLOAD in table else []


def _smallest(squares: Floats, places: Places, count: int) -> Places:
    """Those of the places, up to `count`, that have the smallest squares in each row, smallest first."""
    if count < 1:
        return np.empty((len(squares), 0), dtype=np.int64)
    if count == 1 and len(places):  # of many rows at once, several times as fast
        order: Places = np.argmin(squares[:, places], axis=1)[:, None]
    else:
        order = np.argsort(squares[:, places], axis=1, kind="stable")[:, :count]
    return np.asarray(places[order], dtype=np.int64)


def _numbers(values: Floats, scale: Scale) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = (np.log2(values) if scale.is_logarithmic else values) / scale.deviation
    missing = ~np.isfinite(scaled)
    return np.column_stack([np.where(missing, 0.0, scaled), OTHER_MISMATCH * missing])


def _texts(hot: Floats, mismatch: float | None) -> Floats:
    """One column a category, one for other and one for missing texts, scaled so that two texts are a mismatch apart."""
    missing = np.asarray(np.isnan(hot).any(axis=1))
    filled = np.where(missing[:, None], 0.0, hot)
    other = ~missing & (filled.sum(axis=1) == 0)
    placed: Floats = np.column_stack([filled, other, missing]).astype(np.float64)
    placed *= (OTHER_MISMATCH if mismatch is None else mismatch) / np.sqrt(2)
    return placed


def _usual(points: Floats, workloads: NDArray[Any]) -> float:
    """The distance to the nearest other row of its workload that 95 % of the rows keep; a doubling at least."""
    squares = square_distances(points, points)
    squares[workloads[:, None] != workloads[None, :]] = np.inf
    np.fill_diagonal(squares, np.inf)
    nearest = squares.min(axis=1, initial=np.inf)
    finite = nearest[np.isfinite(nearest)]
    return max(float(np.sqrt(np.quantile(finite, USUAL))), OTHER_MISMATCH) if len(finite) else OTHER_MISMATCH
