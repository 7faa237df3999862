"""Extremely randomised trees, whose spread is their deviation."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from crosswind.data.schema.prediction import Floats

TREES = 30
ROWS_MAX = 2000


@dataclass(frozen=True)
class Forest:
    """Trees over points; each sees every row and splits at random. Source: Geurts, Ernst, Wehenkel 2006."""

    model: ExtraTreesRegressor

    @classmethod
    def fitted(cls, X: Floats, y: Floats, *, seed: int, weights: Floats | None = None) -> Self:
        """Fit the trees to X (n, n_columns), y (n,) and weights of the rows (n,)."""
        model = ExtraTreesRegressor(TREES, random_state=seed, max_features=1.0)
        return cls(model.fit(X.astype(np.float32), y, sample_weight=weights))

    def predict(self, X: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation over the trees, each of shape (n,)."""
        narrow = np.ascontiguousarray(X, dtype=np.float32)
        predictions = np.array([tree.tree_.predict(narrow)[:, 0] for tree in self.model.estimators_])
        return predictions.mean(0), predictions.std(0) + 1e-6
