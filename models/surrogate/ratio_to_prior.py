"""A surrogate of the ratio of measured to prior."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.log_linear import LogLinearSurrogate
from crosswind.models.surrogate.surrogate import HoldoutSurrogate, NotFittedError, Surrogate, check_rows
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate

FOLDED_ROWS_MIN = 10


@dataclass
class RatioToPrior:
    """The prior's median times the surrogate's quantiles of measured over prior.

    The prior extrapolates; the surrogate, whose trees are constant beyond the rows, only corrects it. Ratios are taken
    to priors fitted without the row (`n_folds`, interleaved): one that fits too well would leave nothing to learn.
    """

    prior: Surrogate = field(default_factory=LogLinearSurrogate)
    surrogate: Surrogate = field(default_factory=XgboostQuantileSurrogate)
    n_folds: int = 5
    _is_fitted: bool = field(default=False, init=False, repr=False)

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns the prior, then the ratio. Raises: InvalidInputError."""
        check_rows(X, y, least=2)
        self.prior.fit(X, y)
        self.surrogate.fit(X, y / self._priors_unseen(X, y))
        self._is_fitted = True
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS. Raises: NotFittedError, InvalidInputError."""
        if not self._is_fitted:
            raise NotFittedError("RatioToPrior.predict came before fit")
        medians, ratios = self.prior.predict(X).at(0.5), self.surrogate.predict(X)
        return monotone(ratios.levels, ratios.values * medians[:, None])

    def _priors_unseen(self, X: pd.DataFrame, y: Floats) -> Floats:
        if len(y) < FOLDED_ROWS_MIN:
            return self.prior.predict(X).at(0.5)
        medians, folds = np.empty(len(y)), np.arange(len(y)) % self.n_folds
        for fold in range(self.n_folds):
            seen = folds != fold
            if isinstance(self.prior, HoldoutSurrogate):
                medians[~seen] = self.prior.held_out(seen, ~seen)
            else:
                medians[~seen] = deepcopy(self.prior).fit(X[seen], y[seen]).predict(X[~seen]).at(0.5)
        return medians
