"""Tables of mixed columns as matrices that models learn from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

Values: TypeAlias = "pd.Series[Any]"
FEW_ROWS = 50  # up to which a look-up by row is faster than one by distinct text


@dataclass(frozen=True)
class Columns:
    """The columns of a training table: a number is one column of the matrix, a text one column a category.

    A missing value is NaN in all of its columns; an unseen category is 0 in all of them.
    """

    categories: Mapping[str, tuple[str, ...] | None]  # column -> its categories, None for a number

    @classmethod
    def of(cls, table: pd.DataFrame) -> Self:
        """Learn the columns of a table. Raises: InvalidInputError when two have the same name."""
        names = [str(name) for name in table.columns]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"columns {', '.join(names)}: expected each name once")
        return cls({name: _categories(table.iloc[:, place]) for place, name in enumerate(names)})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the matrix' columns: `batch` or, for a category, `precision=bf16`."""
        return tuple(name for column in self.categories for name in self._names_of(column))

    def matrix(self, table: pd.DataFrame) -> Floats:
        """The matrix of a table, (n_rows, len(names)). Raises: InvalidInputError on other columns or types."""
        if [str(name) for name in table.columns] != list(self.categories):
            raise InvalidInputError(
                f"the table has the columns {', '.join(map(str, table.columns))}, expected "
                f"{', '.join(self.categories)} as in fit"
            )
        blocks = [
            _numbers(column, table.iloc[:, place]) if categories is None else _one_hot(categories, table.iloc[:, place])
            for place, (column, categories) in enumerate(self.categories.items())
        ]
        return np.column_stack([np.empty((len(table), 0)), *blocks])

    def aligned(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with the columns learned from; one that it lacks is missing, as is a text among numbers."""
        rows = table.reindex(columns=list(self.categories))
        texts = [name for name, categories in self.categories.items() if categories is None]
        texts = [name for name in texts if not is_numeric_dtype(rows[name])]
        return rows.assign(**{name: pd.to_numeric(rows[name], errors="coerce") for name in texts})

    def _names_of(self, column: str) -> Sequence[str]:
        categories = self.categories[column]
        return [column] if categories is None else [f"{column}={category}" for category in categories]


def _categories(values: Values) -> tuple[str, ...] | None:
    """Return the categories of a column, None for numbers; a column of objects that is all missing has no category.

    Such a column holds texts in the rows that a fold left out, or it would have been a column of numbers.
    """
    if is_numeric_dtype(values) or is_bool_dtype(values):
        return None
    present = values.dropna()
    if len(present) and all(isinstance(value, int | float | np.number | np.bool_) for value in present):
        return None
    return tuple(sorted({str(value) for value in present}))


def _numbers(column: str, values: Values) -> Floats:
    if values.dtype == np.float64:
        return values.to_numpy()
    try:
        return np.asarray(pd.to_numeric(values), dtype=np.float64)
    except (TypeError, ValueError):
        [wrong, *_] = [value for value in values.dropna() if not isinstance(value, int | float | np.number)]
        raise InvalidInputError(f"column {column} holds {wrong!r}, expected a number as in fit") from None


def _one_hot(categories: Sequence[str], values: Values) -> Floats:
    place_of = {category: place for place, category in enumerate(categories)}
    if isinstance(values.dtype, pd.StringDtype) and len(values) > FEW_ROWS:  # one look-up a text, not a row
        codes, texts = pd.factorize(values)
        places = np.array([*(place_of.get(str(text), -1) for text in texts), -1], dtype=np.int64)[codes]
    else:
        places = np.array([place_of.get(str(value), -1) for value in values], dtype=np.int64)
    hot: Floats = (places[:, None] == np.arange(len(categories))[None, :]).astype(np.float64)
    hot[values.isna().to_numpy()] = np.nan
    return hot
