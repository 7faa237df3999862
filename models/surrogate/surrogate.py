"""What a surrogate promises."""

from typing import Protocol, Self

import numpy as np

from crosswind.data.errors import InvalidInputError
from crosswind.data.prediction import Floats, Prediction

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


class NotFittedError(InvalidInputError):
    """A model was asked before it had learned."""


class Surrogate(Protocol):
    """Predicts a positive objective from encoded configurations, as quantiles."""

    def fit(self, X: Floats, y: Floats) -> Self:
        """Learns from rows in the order of time.

        X: (n_rows, n_columns), NaN is missing; y: (n_rows,), positive. Raises: InvalidInputError.
        """
        ...

    def predict(self, X: Floats) -> Prediction:
        """Quantiles at LEVELS of each row's objective. Raises: NotFittedError, InvalidInputError."""
        ...


def check_rows(X: Floats, y: Floats, *, least: int) -> None:
    """Refuses training rows that cannot be learned from. Raises: InvalidInputError."""
    if X.ndim != 2 or y.shape != (len(X),):
        raise InvalidInputError(f"X has shape {X.shape} and y {y.shape}, expected (n_rows, n_columns) and (n_rows,)")
    if len(y) < least:
        raise InvalidInputError(f"{len(y)} training rows, expected at least {least}")
    if not np.all(np.isfinite(y) & (y > 0)):
        row = int(np.argmin(np.isfinite(y) & (y > 0)))
        raise InvalidInputError(f"y[{row}] is {y[row]}, expected a positive number")
    if np.any(np.isinf(X)):
        raise InvalidInputError("X holds an infinite value, expected numbers, or NaN where missing")


def check_columns(X: Floats, n_columns: int) -> None:
    """Refuses rows of another shape than the surrogate learned from. Raises: InvalidInputError."""
    if X.ndim != 2 or X.shape[1] != n_columns:
        raise InvalidInputError(f"X has shape {X.shape}, expected (n_rows, {n_columns}) as in fit")
