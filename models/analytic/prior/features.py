"""Tables as points with meaningful distances."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.columns import Columns


@dataclass(frozen=True)
class Features:
    """Columns that differ, doublings in place of positive numbers, at standard scale; missing is the mean."""

    columns: Columns
    kept: tuple[int, ...]
    logged: tuple[bool, ...]
    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, table: pd.DataFrame) -> Self:
        """Learn the columns and scales of a table. Raises: InvalidInputError."""
        columns = Columns.of(table)
        matrix = columns.matrix(table)
        kept = tuple(place for place in range(matrix.shape[1]) if len(_known(matrix[:, place])) > 1)
        logged = tuple(bool(np.all(_known(matrix[:, place]) > 0)) for place in kept)
        points = _doublings(matrix[:, kept], logged)
        return cls(columns, kept, logged, np.nanmean(points, axis=0), np.nanstd(points, axis=0))

    def points(self, table: pd.DataFrame) -> Floats:
        """Points of the rows, (n_rows, n_features); columns that `of` did not learn do not count."""
        raw = _doublings(self.columns.matrix(self.columns.aligned(table))[:, self.kept], self.logged)
        return np.nan_to_num((raw - self.centre) / self.scale, nan=0.0)


def _known(values: Floats) -> Floats:
    return np.unique(values[~np.isnan(values)])


def _doublings(matrix: Floats, logged: tuple[bool, ...]) -> Floats:
    """Base-2 logarithms of columns of positive numbers; other numbers in them count as the smallest positive one."""
    points = matrix.copy()
    for place, is_logged in enumerate(logged):
        if is_logged:
            points[:, place] = np.log2(np.maximum(points[:, place], 2.0**-60))
    return points
