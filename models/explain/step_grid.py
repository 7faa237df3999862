"""A run's step rows as arrays of steps and ranks."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats

Rows = Mapping[str, Floats]  # a column's values, shape (n_rows,), NaN = not recorded


def grid_of(rows: Rows, columns: Sequence[str]) -> tuple[Floats, Floats, dict[str, Floats]]:
    """Step numbers, ranks, and these columns as arrays of shape (n_steps, n_ranks), NaN where no row was recorded."""
    numbers, step_index = _placed(rows["step"])
    ranks, rank_index = _placed(rows["rank"])
    shape = len(numbers), len(ranks)
    place = step_index * len(ranks) + rank_index
    grid = {}
    for name in columns:
        cells = np.full(len(numbers) * len(ranks), np.nan)
        cells[place] = rows[name]
        grid[name] = cells.reshape(shape)
    return numbers, ranks, grid


def rows_of(steps: pd.DataFrame, columns: Sequence[str]) -> dict[str, Floats]:
    """These columns of a frame as numbers."""
    return {name: steps[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in columns}


def _placed(values: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The different values in order, and the place of each among them."""
    different = np.sort(np.asarray(pd.unique(values), dtype=np.float64))
    return different, np.asarray(np.searchsorted(different, values), dtype=np.int64)
