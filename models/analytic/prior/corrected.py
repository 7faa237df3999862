"""Formulas times a correction learned from runs."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from statistics import NormalDist
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.analytic.prior.correction import (
    Corrected,
    Correction,
    NoCorrection,
    ProcessCorrection,
    TreeCorrection,
)
from crosswind.models.analytic.prior.features import Features
from crosswind.models.analytic.prior.prior import AnalyticPrior
from crosswind.models.surrogate.log_normal import log_normal
from crosswind.models.surrogate.surrogate import NotFittedError, check_rows

ROWS_MIN = 4
FOLDS_MAX = 4
TRAINING_ROWS_MIN = 20  # with fewer, corrections cannot be compared
HELD_ROWS_MIN = 10  # in all folds; a choice by fewer would be random
SPREAD_ROWS_MIN = 10  # of a held-out fold
WIDER_BOUNDS = (0.5, 5.0)  # of the factor of the spread from held-out errors

# Every correction, made from a seed; the first is taken where there are no rows to choose by.
CORRECTIONS: tuple[Callable[[int], Correction], ...] = (
    ProcessCorrection,
    TreeCorrection,
    NoCorrection,
)


@dataclass
class CorrectedPrior:
    """The analytic prior times the correction that does best on groups of runs held out together.

    `group_columns` name the columns whose values will be new: by ("hidden", "layers") the choice is for unseen models,
    by ("ranks",) for unseen scales. Far from all runs the correction is 1 and only the formulas remain.
    """

    group_columns: tuple[str, ...] = ()
    seed: int = 0
    prior: AnalyticPrior = field(default_factory=AnalyticPrior, init=False)
    _features: Features | None = field(default=None, init=False, repr=False)
    _correction: Correction | None = field(default=None, init=False, repr=False)
    _wider: float = field(default=1.0, init=False, repr=False)
    _points: Floats = field(
        default_factory=lambda: np.empty((0, 0)), init=False, repr=False
    )  # of the rows learned from
    _formulas: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)  # log seconds of these rows
    _log_ratios: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    @property
    def chosen(self) -> str:
        """The correction's name. Raises: NotFittedError."""
        if self._correction is None:
            raise NotFittedError("CorrectedPrior.chosen came before fit")
        return self._correction.name

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        """Learns from step times y in seconds, (n_rows,), four at least. Raises: InvalidInputError."""
        check_rows(X, y, least=ROWS_MIN)
        self._check_groups(X)
        self.prior = AnalyticPrior(seed=self.seed).fit(X, y)
        self._features = Features.of(X)
        self._points, self._formulas = self._features.points(X), np.log(self.prior.seconds(X))
        self._log_ratios = np.log(y) - self._formulas
        make, self._wider = self._best(self._points, self._log_ratios, X)
        self._correction = make(self.seed).fit(self._points, self._log_ratios)
        return self

    def held_out(self, training: NDArray[np.bool_], test: NDArray[np.bool_]) -> Floats:
        """Medians of test rows, (n_test,), by a correction learned from training rows; constants are those of all rows.

        Masks are over the fitted rows. Raises: NotFittedError.
        """
        if self._correction is None:
            raise NotFittedError("CorrectedPrior.held_out came before fit")
        learned = deepcopy(self._correction).refit(self._points[training], self._log_ratios[training])
        log_ratio = learned.predict(self._points[test]).log_ratio
        return np.asarray(np.exp(self._formulas[test] + log_ratio), np.float64)

    def seconds(self, X: pd.DataFrame) -> Floats:
        """The median step time of each row, (n_rows,). Raises: NotFittedError, InvalidInputError."""
        return np.asarray(self.prior.seconds(X) * np.exp(self._corrected(X).log_ratio), np.float64)

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS; the constants' uncertainty counts as far as there are no runs near.

        Raises: NotFittedError, InvalidInputError.
        """
        corrected = self._corrected(X)
        centre, constants = self.prior.log_moments(X)
        spread = np.sqrt((self._wider * corrected.spread) ** 2 + corrected.openness * constants**2)
        return log_normal(centre + corrected.log_ratio, spread)

    def _corrected(self, X: pd.DataFrame) -> Corrected:
        if self._correction is None or self._features is None:
            raise NotFittedError("CorrectedPrior.predict came before fit")
        return self._correction.predict(self._features.points(X))

    def _check_groups(self, X: pd.DataFrame) -> None:
        missing = [name for name in self.group_columns if name not in X.columns]
        if missing:
            raise InvalidInputError(f"group column {missing[0]} is not in the table, expected one of {list(X.columns)}")

    def _best(self, points: Floats, log_ratios: Floats, X: pd.DataFrame) -> tuple[Callable[[int], Correction], float]:
        """The correction with the least mean absolute error on held-out groups, and the factor of its spread."""
        if points.shape[1] == 0:
            return NoCorrection, 1.0
        folds = list(self._folds(X))
        if sum(int(np.sum(fold)) for fold in folds) < HELD_ROWS_MIN:
            return CORRECTIONS[0], 1.0
        tried = []
        for make in CORRECTIONS:
            held = [_held_out(partial(make, self.seed), fold, points, log_ratios) for fold in folds]
            error = float(np.mean(np.abs(np.concatenate([misses for misses, _ in held]))))
            tried.append((error, make, _wider(held)))
        _, make, wider = min(tried, key=lambda trial: trial[0])
        return make, wider

    def _folds(self, X: pd.DataFrame) -> Iterator[NDArray[np.bool_]]:
        """Masks of rows to hold out: whole groups, in at most four folds; none that leaves too few to learn from."""
        if not self.group_columns:
            return
        groups: NDArray[Any] = X.groupby(list(self.group_columns), dropna=False, sort=True).ngroup().to_numpy()
        n_folds = min(FOLDS_MAX, len(np.unique(groups)))
        for fold in range(n_folds):
            held = groups % n_folds == fold
            if np.sum(~held) >= TRAINING_ROWS_MIN:
                yield held


def _held_out(
    make: Callable[[], Correction], held: NDArray[np.bool_], points: Floats, log_ratios: Floats
) -> tuple[Floats, Floats]:
    """Errors of held-out rows and their predicted spreads, (n_held,) each."""
    predicted = make().fit(points[~held], log_ratios[~held]).predict(points[held])
    return log_ratios[held] - predicted.log_ratio, predicted.spread


def _wider(held: Sequence[tuple[Floats, Floats]]) -> float:
    """Return the factor of spreads that covers 90 % of every group: a new one may be like the worst of a handful.

    Source: Dunn, Wasserman, Ramdas 2023, "Distribution-free prediction sets for two-layer hierarchical models": with
    fewer than nine groups no quantile below their largest promises 90 % for the next one.
    """
    ratios = [
        float(np.quantile(np.abs(misses / spreads), 0.9) / NormalDist().inv_cdf(0.95))
        for misses, spreads in held
        if len(misses) >= SPREAD_ROWS_MIN
    ]
    return float(np.clip(max(ratios, default=1.0), *WIDER_BOUNDS))
