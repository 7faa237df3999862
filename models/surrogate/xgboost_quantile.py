"""Gradient-boosted quantile trees."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.columns import Columns
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError, check_rows
from crosswind.models.surrogate.trees import Trees

if TYPE_CHECKING:  # heavy
    import xgboost as xgb


@dataclass
class XgboostQuantileSurrogate:
    """All quantiles from one booster, on the logarithm of the objective: errors are ratios.

    Source: XGBoost's `reg:quantileerror` (Koenker and Bassett's loss, a vector of levels).
    """

    seed: int = 0
    n_rounds: int = 100
    max_depth: int = 4
    learning_rate: float = 0.1
    n_threads: int = 1
    _centre: float = field(default=0.0, init=False, repr=False)
    _columns: Columns | None = field(default=None, init=False, repr=False)
    _booster: "Trees | xgb.Booster | None" = field(default=None, init=False, repr=False)

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns the quantiles of y given X from two rows or more. Raises: InvalidInputError."""
        check_rows(X, y, least=2)
        self._centre = float(np.median(np.log(y)))  # the booster has 32 bits, so the unit must not use them up
        self._columns = Columns.of(X)
        import xgboost as xgb  # noqa: PLC0415 - heavy, and needed only to learn

        rows = xgb.QuantileDMatrix(self._columns.matrix(X), label=np.log(y) - self._centre, nthread=self.n_threads)
        booster = xgb.train(self._parameters(), rows, num_boost_round=self.n_rounds)
        self._booster = Trees.of(booster, len(self._columns.names))
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS. Raises: NotFittedError, InvalidInputError."""
        if self._booster is None or self._columns is None:
            raise NotFittedError("XgboostQuantileSurrogate.predict came before fit")
        rows = self._columns.matrix(X)
        if len(rows) == 0:
            return Prediction(LEVELS, np.empty((0, len(LEVELS))))
        log_quantiles = self._booster.inplace_predict(rows)
        return monotone(LEVELS, np.exp(np.asarray(log_quantiles, dtype=np.float64) + self._centre))

    def _parameters(self) -> dict[str, object]:
        return {
            "objective": "reg:quantileerror",
            "quantile_alpha": list(LEVELS),
            "tree_method": "hist",
            "max_depth": self.max_depth,
            "learning_rate": self.learning_rate,
            "min_child_weight": 2,  # the loss has unit curvature, so this is rows a leaf
            "seed": self.seed,
            "nthread": self.n_threads,
        }
