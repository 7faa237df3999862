"""Earlier contexts as hypotheses about a new one: how each variant did there, and how alike they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.columns import Columns
from crosswind.models.tuner.variants.experience import Context
from crosswind.models.tuner.variants.forecast import Forecast, Shown
from crosswind.models.tuner.variants.hypotheses import FAILED, Hypotheses

REGRET_MAX = 9.0  # ten times the best is as bad as any: beyond it a measurement tells of limits, not of the variant
CONTEXTS_MIN = 8  # from fewer, no features are learned
TREES = 100
FORECAST = 0.7  # of the weight, before any trial, is the forecast's: settled on kinds of matrices left out in turn


@dataclass(frozen=True)
class Precedents:
    """The experience of earlier contexts, and how a new one is likened to them.

    A regret is the objective over the context's best, minus 1, at most REGRET_MAX, and FAILED where it failed.
    """

    shown: Shown
    likeness: "Likeness | None"

    @classmethod
    def of(cls, contexts: Sequence[Context], objectives: Floats, failed: Floats, seed: int) -> Self:
        """From objectives (n, m), NaN where there is none, and whether it failed (n, m), NaN where not measured."""
        kept = np.asarray(np.isfinite(objectives).any(axis=1))
        solved = [context for context, keeps in zip(contexts, kept.tolist(), strict=True) if keeps]
        is_measured = ~np.isnan(failed[kept])
        filled = np.where(is_measured, failed[kept], _means(failed[kept]))
        shown = Shown(_regret(objectives[kept], failed[kept]), filled, is_measured)
        return cls(shown, Likeness.of(solved, shown, seed))

    def about(self, context: Context) -> "Hypotheses":
        """Return what the new context may be like, before anything was tried on it."""
        regret, failed = self.shown.regret, self.shown.failed
        if self.likeness is None:
            return Hypotheses(regret, failed, np.full(len(regret), 1 / max(len(regret), 1)))
        features = self.likeness.features(context)
        weights = self.likeness.weights(features)
        if self.likeness.forecast is None:
            return Hypotheses(regret, failed, weights)
        forecast = self.likeness.forecast.of_context(features)
        return Hypotheses(
            np.vstack([regret, forecast[0]]),
            np.vstack([failed, forecast[1]]),
            np.append((1 - FORECAST) * weights, FORECAST),
        )


@dataclass(frozen=True)
class Likeness:
    """Trees over features whose leaves hold contexts in which the same variants are good.

    Source: Meinshausen 2006, "Quantile regression forests": a new row's weight on a row learned from is how often both
    share a leaf.
    """

    columns: Columns
    medians: Floats
    trees: ExtraTreesRegressor
    leaves: Floats  # (n, trees)
    forecast: Forecast | None

    @classmethod
    def of(cls, contexts: Sequence[Context], shown: Shown, seed: int) -> "Likeness | None":
        """None when there are few contexts, or no features."""
        table = pd.DataFrame([dict(context.features) for context in contexts])
        if len(contexts) < CONTEXTS_MIN or table.empty:
            return None
        columns = Columns.of(table)
        matrix = columns.matrix(table)
        medians = np.nan_to_num(np.nanmedian(matrix, axis=0))
        full = np.where(np.isnan(matrix), medians, matrix)
        trees = ExtraTreesRegressor(TREES, max_features=0.25, random_state=seed).fit(full, np.log1p(shown.regret))
        return cls(columns, medians, trees, trees.apply(full), Forecast.of(full, shown, seed))

    def features(self, context: Context) -> Floats:
        """Shape (1, k). A feature that is missing counts as the median; those not learned from are not looked at."""
        row = pd.DataFrame([{name: context.features.get(name) for name in self.columns.categories}])
        matrix = self.columns.matrix(row)
        return np.where(np.isnan(matrix), self.medians, matrix)

    def weights(self, features: Floats) -> Floats:
        """Return how probably the context of these features is like each of the n, shape (n,); their sum is 1."""
        same = self.leaves == self.trees.apply(features)
        return np.asarray((same / same.sum(axis=0)).mean(axis=1))


def _regret(objectives: Floats, failed: Floats) -> Floats:
    best = np.nanmin(objectives, axis=1, keepdims=True, initial=np.inf)
    regret = np.where(failed == 1, FAILED, np.minimum(objectives / best - 1, REGRET_MAX))
    return np.where(np.isnan(regret), _means(regret), regret)


def _means(columns: Floats) -> Floats:
    """The mean of what is known of each column, FAILED's half where nothing is; shape (m,)."""
    is_finite = np.isfinite(columns)
    total = np.where(is_finite, columns, 0).sum(axis=0)
    return np.where(is_finite.any(axis=0), total / np.maximum(is_finite.sum(axis=0), 1), FAILED / 2)
