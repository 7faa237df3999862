"""Columns grouped by the rows that they are known of, so that those of a group are compared at once."""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats
from crosswind.models.association.design import RUNS_MIN, Ints

VARIED_MIN = 5  # rows in which a column is not at its most usual value
Key = TypeVar("Key")


def by_gaps(table: Mapping[Key, "pd.Series[float]"]) -> list[tuple[Ints, list[Key]]]:
    """Return rows and the columns that are known of these, of the columns that varied in enough rows."""
    groups: dict[bytes, tuple[Ints, list[Key]]] = {}
    for key, values in table.items():
        numbers = np.asarray(values.to_numpy(np.float64, na_value=np.nan), np.float64)
        is_finite = np.isfinite(numbers)
        rows = np.flatnonzero(is_finite)
        if len(rows) >= RUNS_MIN and len(rows) - _most_usual(numbers[rows]) >= VARIED_MIN:
            groups.setdefault(is_finite.tobytes(), (rows, []))[1].append(key)
    return list(groups.values())


def _most_usual(numbers: Floats) -> int:
    """Return how often the most usual of these occurs."""
    return int(np.unique(numbers, return_counts=True)[1].max())
