"""Distances between the rows of two tables, column by column, for kernels over mixed columns."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.columns import Columns

UNSEEN = -1.0


@dataclass(frozen=True)
class Coordinates:
    """The columns of a table as one number each: a number in standard deviations, a category as its place.

    Missing is NaN; an unseen category differs from all others.
    """

    columns: Columns
    centres: Floats  # (n_columns,), 0 for a category
    scales: Floats  # (n_columns,), 1 for a category

    @classmethod
    def of(cls, table: pd.DataFrame) -> Self:
        """Learns categories, centres and scales. Raises: InvalidInputError."""
        columns = Columns.of(table)
        numbers = [
            np.asarray(pd.to_numeric(table.iloc[:, place]), dtype=np.float64) if categories is None else np.zeros(1)
            for place, categories in enumerate(columns.categories.values())
        ]
        present = [values[np.isfinite(values)] for values in numbers]
        centres = np.array([values.mean() if len(values) else 0.0 for values in present])
        deviations = np.array([values.std() if len(values) else 0.0 for values in present])
        return cls(columns, centres, np.where(deviations > 1e-12 * (1 + np.abs(centres)), deviations, 1.0))

    @property
    def categorical(self) -> tuple[bool, ...]:
        """Return whether each column is a category."""
        return tuple(categories is not None for categories in self.columns.categories.values())

    def points(self, table: pd.DataFrame) -> Floats:
        """Points of the rows, (n_rows, n_columns). Raises: InvalidInputError on other columns, or text for a number."""
        self.columns.matrix(table)  # refuses what does not fit
        made = [
            np.asarray(pd.to_numeric(table.iloc[:, place]), dtype=np.float64)
            if categories is None
            else _places(table.iloc[:, place], categories)
            for place, categories in enumerate(self.columns.categories.values())
        ]
        points = np.column_stack([np.empty((len(table), 0)), *made])
        if np.isinf(points).any():
            raise InvalidInputError("X holds an infinite value, expected numbers, or NaN where missing")
        return np.asarray((points - self.centres) / self.scales, dtype=np.float64)

    def square_distances(self, left: Floats, right: Floats) -> Floats:
        """Square distances (n_columns, n_left, n_right): of categories 0 or 1, from present to missing 1."""
        gaps = left.T[:, :, None] - right.T[:, None, :]
        kinds = np.array(self.categorical, dtype=bool)
        strangers = (gaps != 0) | (left.T[:, :, None] == UNSEEN)
        squares = np.where(kinds[:, None, None], strangers.astype(np.float64), gaps**2)
        one_missing = np.isnan(left.T)[:, :, None] != np.isnan(right.T)[:, None, :]
        return np.where(np.isnan(gaps), one_missing.astype(np.float64), squares)


def _places(values: "pd.Series[Any]", categories: tuple[str, ...]) -> Floats:
    texts = values.astype("string").fillna("").to_numpy(dtype=str)
    places = pd.Index(list(categories), dtype=object).get_indexer(pd.Index(texts, dtype=object)).astype(np.float64)
    places[values.isna().to_numpy()] = np.nan
    return np.asarray(places, dtype=np.float64)
