"""Trees that learned from every run there is, for questions that no cohort answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.data.schema.question import Question
from crosswind.models.next_run.describe import Kinds, described, with_columns
from crosswind.models.surrogate import LEVELS
from crosswind.models.surrogate.trees import Trees

Narrow = NDArray[np.float32]


@dataclass(frozen=True)
class Encoding:
    """The columns of a described table as numbers of bins, fewer than XGBoost's own.

    A text is the mean log seconds of the runs that have it, and so has a place among the others; one that no run had
    is missing. With so few bins XGBoost's sketch of a column is exact, in however many processes it is made.
    """

    centre: float  # mean log seconds
    means: Mapping[str, Mapping[str, float]]  # text columns
    cuts: Mapping[str, Floats]  # every column, in order; between its bins

    def matrix(self, table: pd.DataFrame) -> Narrow:
        """Return the bins, (n_rows, n_columns), NaN where missing."""
        return np.column_stack([self._bins(name, table[name]) for name in self.cuts]).astype(np.float32)

    def _bins(self, name: str, column: "pd.Series[Any]") -> Floats:
        values = self._numbers(name, column)
        bins: Floats = np.searchsorted(self.cuts[name], values, side="right").astype(np.float64)
        bins[np.isnan(values)] = np.nan
        return bins

    def _numbers(self, name: str, column: "pd.Series[Any]") -> Floats:
        if name in self.means:
            column = column.astype(object).map(self.means[name])
        elif not is_numeric_dtype(column):
            column = pd.to_numeric(column, errors="coerce")
        return np.asarray(column.to_numpy(np.float64), dtype=np.float64)


@dataclass(frozen=True)
class RunTrees:
    """Trees over the bins of a described run; `offsets` (n_levels,) of log seconds are errors on unseen cohorts."""

    kinds: Kinds
    encoding: Encoding
    trees: Trees
    offsets: Floats
    rows: int  # learned from

    def predict(self, questions: Sequence[Question]) -> Prediction:
        """Quantiles of seconds at LEVELS."""
        table = with_columns(described(questions, self.kinds), list(self.kinds))
        medians = self.encoding.centre + self.trees.inplace_predict(self.encoding.matrix(table).astype(np.float64))
        return monotone(LEVELS, np.exp(medians[:, None] + self.offsets))
