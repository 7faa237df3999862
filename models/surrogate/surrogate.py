"""The protocols of surrogates."""

from typing import Protocol, Self, runtime_checkable

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.surrogate.validation import Mask

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


class NotFittedError(InvalidInputError):
    """A model was used before it was fitted."""


class Surrogate(Protocol):
    """Predicts a positive objective from a table of descriptions, as quantiles.

    Columns of `X` are numbers or texts, missing is NaN or None; `columns.Columns` makes a matrix of them. A fitted
    surrogate holds only fields that `registry` can save: numbers, texts, arrays, boosters, and lists, mappings and
    dataclasses of ours made of these.
    """

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns from rows in the order of time; y: (n_rows,), positive. Raises: InvalidInputError."""
        ...

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS of each row's objective. Raises: NotFittedError, InvalidInputError."""
        ...


@runtime_checkable
class HoldoutSurrogate(Protocol):
    """A surrogate that, once fitted, predicts some of its rows from others without a new fit."""

    def held_out(self, training: Mask, test: Mask) -> Floats:
        """Medians of the test rows predicted from the training rows, (n_test,); masks over the fitted rows."""
        ...

    def medians(self, X: pd.DataFrame) -> Floats:
        """Medians of new rows, shape (n_rows,). Raises: NotFittedError, InvalidInputError."""
        ...


def check_rows(X: pd.DataFrame, y: Floats, *, least: int) -> None:
    """Refuses training rows that cannot be learned from. Raises: InvalidInputError."""
    if y.shape != (len(X),):
        raise InvalidInputError(f"X has shape {X.shape} and y {y.shape}, expected (n_rows, n_columns) and (n_rows,)")
    if len(y) < least:
        raise InvalidInputError(f"{len(y)} training rows, expected at least {least}")
    if not np.all(np.isfinite(y) & (y > 0)):
        row = int(np.argmin(np.isfinite(y) & (y > 0)))
        raise InvalidInputError(f"y[{row}] is {y[row]}, expected a positive number")
    if np.any(np.isinf(X.select_dtypes("number").to_numpy(np.float64, na_value=np.nan))):
        raise InvalidInputError("X holds an infinite value, expected numbers, or NaN where missing")
