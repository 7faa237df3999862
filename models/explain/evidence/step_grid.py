"""Step rows of a run as arrays of steps and ranks."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats

Rows = Mapping[str, Floats]  # values by column, shape (n_rows,), NaN = not recorded


def grid_of(rows: Rows, columns: Sequence[str]) -> tuple[Floats, Floats, dict[str, Floats]]:
    """Return step numbers, ranks, and these columns as arrays of shape (n_steps, n_ranks), NaN = not recorded."""
    numbers, step_index = _placed(rows["step"])
    ranks, rank_index = _placed(rows["rank"])
    shape = len(numbers), len(ranks)
    place = step_index * len(ranks) + rank_index
    grid = {}
    for name in columns:
        values = np.full(len(numbers) * len(ranks), np.nan)
        values[place] = rows[name]
        grid[name] = values.reshape(shape)
    return numbers, ranks, grid


def _placed(values: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distinct values in order, and the place of each value among them."""
    distinct = np.sort(np.asarray(pd.unique(values), dtype=np.float64))
    return distinct, np.asarray(np.searchsorted(distinct, values), dtype=np.int64)
