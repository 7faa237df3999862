"""Sources in the coordinates of a target, with models of their measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gaussian_process import Process
from crosswind.models.tuner.search.portfolio.encoding import foreign_points
from crosswind.models.tuner.search.scale import logarithms
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space

ROWS_MIN = 3  # of a source, to say anything
ROWS_MAX = 300  # of a source, for its process; the best and a spread of the others are kept


@dataclass(frozen=True)
class FittedSource:
    """One source in the target's coordinates.

    Args:
        name: The source's.
        X: Points that were measured, shape (n, n_coordinates).
        y: Their standardised objectives, shape (n,).
        failed: Points that failed, shape (n_failed, n_coordinates).
        process: Of the standardised objectives.
        spread: Of the logarithm of the objective.
        features: The source's description as numbers, shape (n_features,).
    """

    name: str
    X: Floats
    y: Floats
    failed: Floats
    process: Process
    spread: float
    features: Floats

    @classmethod
    def of(cls, space: Space, source: Source, features: Floats) -> Self | None:
        """Return the source in the target's coordinates; None where too few rows have the target's parameters."""
        points, rows = foreign_points(space, source.configurations)
        measured = np.array([source.objectives[i] is not None for i in rows], dtype=bool)
        if measured.sum() < ROWS_MIN:
            return None
        objectives = np.array([source.objectives[i] for i in rows if source.objectives[i] is not None], np.float64)
        logs = logarithms(objectives)
        spread = max(float(logs.std()), 1e-9)
        X, y = points[measured], (logs - logs.mean()) / spread
        few = best_and_spread(y, ROWS_MAX)
        return cls(source.name, X, y, points[~measured], Process.fitted(X[few], y[few]), spread, features)

    def best(self, count: int) -> Floats:
        """Return the points of its best rows, best first, shape (at most count, n_coordinates)."""
        return np.asarray(self.X[np.argsort(self.y, kind="stable")[:count]])


def best_and_spread(y: Floats, count: int) -> list[int]:
    """Return the indices of at most `count` values to learn from: the best half and an even spread of the others."""
    if len(y) <= count:
        return list(range(len(y)))
    order = np.argsort(y, kind="stable")
    best, others = order[: count // 2], order[count // 2 :]
    spread = others[np.linspace(0, len(others) - 1, count - count // 2).round().astype(int)]
    return sorted({*best.tolist(), *spread.tolist()})


def feature_numbers(descriptions: Sequence[Mapping[str, float | str]]) -> Floats:
    """Return features as columns, numbers on their logarithm's scale where positive, texts one column a value.

    Shape (n_descriptions, n_columns), each column between 0 and 1; a missing feature lies in the middle.
    """
    columns = [
        column
        for name in sorted({name for description in descriptions for name in description})
        for column in _columns(descriptions, name)
    ]
    return np.array(columns, np.float64).T.reshape(len(descriptions), len(columns))


def _columns(descriptions: Sequence[Mapping[str, float | str]], name: str) -> list[list[float]]:
    values = [description.get(name) for description in descriptions]
    texts = sorted({value for value in values if isinstance(value, str)})
    columns = [[float(value == text) for value in values] for text in texts]
    numbers = np.array([value if isinstance(value, int | float) else np.nan for value in values], np.float64)
    if np.all(np.isnan(numbers)):
        return columns
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    if low > 0:
        numbers, low, high = np.log(numbers), np.log(low), np.log(high)
    placed = (numbers - low) / (high - low) if high > low else np.full(len(numbers), 0.5)
    return [*columns, np.nan_to_num(placed, nan=0.5).tolist()]
