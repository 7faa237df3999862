"""Earlier contexts as hypotheses about a new one: the results of the variants there, and the similarity."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.columns import Columns
from crosswind.models.tuner.variants.experience import Context
from crosswind.models.tuner.variants.hypotheses import FAILED, Hypotheses
from crosswind.models.tuner.variants.variant_forest import Forecast, Records

REGRET_MAX = 9.0  # ten times the best is as bad as any: beyond it limits decide, not the variant
CONTEXTS_MIN = 8  # from fewer, no features are learned
TREES = 100
FORECAST = 0.7  # of the weight, before any trial, is the forecast's: fitted on kinds of matrices left out in turn


@dataclass(frozen=True)
class Precedents:
    """The results in earlier contexts, and the similarity of a new one to them.

    A regret is the objective over the context's best, minus 1, at most REGRET_MAX, and FAILED where it failed.
    """

    records: Records
    likeness: "Likeness | None"

    @classmethod
    def of(cls, contexts: Sequence[Context], objectives: Floats, failed: Floats, seed: int) -> Self:
        """Take objectives (n, m), NaN where there is none, and whether it failed (n, m), NaN where not measured."""
        is_solved = np.asarray(np.isfinite(objectives).any(axis=1))
        solved = [context for context, is_one in zip(contexts, is_solved.tolist(), strict=True) if is_one]
        is_measured = ~np.isnan(failed[is_solved])
        filled = np.where(is_measured, failed[is_solved], _means(failed[is_solved]))
        records = Records(_regret(objectives[is_solved], failed[is_solved]), filled, is_measured)
        return cls(records, Likeness.of(solved, records, seed))

    def about(self, context: Context) -> "Hypotheses":
        """Return the hypotheses about a new context, before any trial on it."""
        regret, failed = self.records.regret, self.records.failed
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
    def of(cls, contexts: Sequence[Context], records: Records, seed: int) -> "Likeness | None":
        """Fit the trees; None when there are few contexts, or no features."""
        table = pd.DataFrame([dict(context.features) for context in contexts])
        if len(contexts) < CONTEXTS_MIN or table.empty:
            return None
        columns = Columns.of(table)
        matrix = columns.matrix(table)
        medians = np.nan_to_num(np.nanmedian(matrix, axis=0))
        full = np.where(np.isnan(matrix), medians, matrix)
        trees = ExtraTreesRegressor(TREES, max_features=0.25, random_state=seed).fit(full, np.log1p(records.regret))
        return cls(columns, medians, trees, trees.apply(full), Forecast.of(full, records, seed))

    def features(self, context: Context) -> Floats:
        """Return features of shape (1, k), the median where one is missing; further ones are left out."""
        row = pd.DataFrame([{name: context.features.get(name) for name in self.columns.categories}])
        matrix = self.columns.matrix(row)
        return np.where(np.isnan(matrix), self.medians, matrix)

    def weights(self, features: Floats) -> Floats:
        """Return each context's probability to be like the one of these features, shape (n,); they sum to 1."""
        same = self.leaves == self.trees.apply(features)
        return np.asarray((same / same.sum(axis=0)).mean(axis=1))


def _regret(objectives: Floats, failed: Floats) -> Floats:
    best = np.nanmin(objectives, axis=1, keepdims=True, initial=np.inf)
    regret = np.where(failed == 1, FAILED, np.minimum(objectives / best - 1, REGRET_MAX))
    return np.where(np.isnan(regret), _means(regret), regret)


def _means(columns: Floats) -> Floats:
    """Return the mean of each column without its gaps, half of FAILED where it is all gaps; shape (m,)."""
    is_finite = np.isfinite(columns)
    total = np.where(is_finite, columns, 0).sum(axis=0)
    return np.where(is_finite.any(axis=0), total / np.maximum(is_finite.sum(axis=0), 1), FAILED / 2)
