"""Configurations as numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from crosswind.data.errors import InvalidInputError
from crosswind.data.metric import Scalar
from crosswind.data.prediction import Floats

Values = Mapping[str, Scalar]


@dataclass(frozen=True)
class Encoder:
    """Turns configurations into rows of a matrix with stable columns.

    A number or truth value is one column; a text one column a category (a parameter with a text anywhere is all text).
    Missing is NaN in all of its columns; a category not seen is zero in all of them; unknown parameters are left out.
    """

    categories: Mapping[str, tuple[str, ...] | None]  # parameter -> its categories, None for a number

    @classmethod
    def of(cls, configurations: Sequence[Values]) -> Self:
        """The encoder of the parameters and categories in these configurations. Raises: InvalidInputError."""
        names = sorted({name for configuration in configurations for name in configuration})
        return cls({name: _categories(name, [each.get(name) for each in configurations]) for name in names})

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names: `batch` or, for a category, `precision=bf16`."""
        return tuple(column for name in self.categories for column in self._columns_of(name))

    def encode(self, configurations: Sequence[Values]) -> Floats:
        """The matrix, shape (n_configurations, n_columns). Raises: InvalidInputError for a text in a number's place."""
        rows = [[number for name in self.categories for number in self._row_of(name, each)] for each in configurations]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.columns))

    def _columns_of(self, name: str) -> list[str]:
        categories = self.categories[name]
        return [name] if categories is None else [f"{name}={category}" for category in categories]

    def _row_of(self, name: str, configuration: Values) -> list[float]:
        value, categories = _checked(name, configuration.get(name)), self.categories[name]
        if value is None:
            return [math.nan] * (1 if categories is None else len(categories))
        if categories is not None:
            return [float(str(value) == category) for category in categories]
        if isinstance(value, str):
            raise InvalidInputError(f"parameter {name} is {value!r}, expected a number as in the earlier runs")
        return [float(value)]


def _categories(name: str, values: Sequence[Scalar]) -> tuple[str, ...] | None:
    known = [value for value in values if _checked(name, value) is not None]
    if not any(isinstance(value, str) for value in known):
        return None
    return tuple(sorted({str(value) for value in known}))


def _checked(name: str, value: Scalar) -> Scalar:
    if value is not None and not isinstance(value, int | float | str | bool | np.number | np.bool_):
        raise InvalidInputError(f"parameter {name} is {value!r}, expected a number, a text or a truth value")
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        raise InvalidInputError(f"parameter {name} is {value}, expected a finite number")
    return value
