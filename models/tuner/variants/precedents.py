"""Earlier contexts as hypotheses about a new one: how each variant did there, and how alike they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

from crosswind.data.prediction import Floats
from crosswind.models.surrogate.columns import Columns
from crosswind.models.tuner.variants.experience import Context

REGRET_MAX = 9.0  # ten times the best is as bad as any: beyond it a measurement tells of limits, not of the variant
FAILED = 10.0  # in place of the regret of what failed
CONTEXTS_MIN = 8  # from fewer, no features are learned
TREES = 100


@dataclass(frozen=True)
class Precedents:
    """What n contexts showed of m variants.

    regret (n, m): objective over the context's best, minus 1, at most REGRET_MAX, FAILED where it failed, and the
    variant's mean over the other contexts where it was not measured; failed (n, m): 1.0 where it failed.
    """

    regret: Floats
    failed: Floats
    likeness: "Likeness | None"

    @classmethod
    def of(cls, contexts: Sequence[Context], objectives: Floats, failed: Floats, seed: int) -> Self:
        """From objectives (n, m), NaN where there is none, and whether it failed (n, m), NaN where not measured."""
        kept = np.asarray(np.isfinite(objectives).any(axis=1))
        known = [context for context, keeps in zip(contexts, kept.tolist(), strict=True) if keeps]
        regret = _regret(objectives[kept], failed[kept])
        filled = np.where(np.isnan(failed[kept]), _means(failed[kept]), failed[kept])
        return cls(regret, filled, Likeness.of(known, np.hstack([np.log1p(regret), 2 * filled]), seed))

    def weights(self, context: Context) -> Floats:
        """How probable it is that the context is like each of the n, shape (n,), before anything was tried on it."""
        if self.likeness is None:
            return np.full(len(self.regret), 1 / max(len(self.regret), 1))
        return self.likeness.weights(context)


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

    @classmethod
    def of(cls, contexts: Sequence[Context], showed: Floats, seed: int) -> "Likeness | None":
        """None when there are few contexts, or no features."""
        table = pd.DataFrame([dict(context.features) for context in contexts])
        if len(contexts) < CONTEXTS_MIN or table.empty:
            return None
        columns = Columns.of(table)
        matrix = columns.matrix(table)
        medians = np.nan_to_num(np.nanmedian(matrix, axis=0))
        trees = ExtraTreesRegressor(TREES, max_features=0.5, random_state=seed)
        full = np.where(np.isnan(matrix), medians, matrix)
        return cls(columns, medians, trees.fit(full, showed), trees.apply(full))

    def weights(self, context: Context) -> Floats:
        """Shape (n,), their sum is 1. A feature that is missing counts as the median; others are not looked at."""
        row = pd.DataFrame([{name: context.features.get(name) for name in self.columns.categories}])
        matrix = self.columns.matrix(row)
        same = self.leaves == self.trees.apply(np.where(np.isnan(matrix), self.medians, matrix))
        return np.asarray((same / same.sum(axis=0)).mean(axis=1))


def _regret(objectives: Floats, failed: Floats) -> Floats:
    best = np.nanmin(objectives, axis=1, keepdims=True, initial=np.inf)
    regret = np.where(failed == 1, FAILED, np.minimum(objectives / best - 1, REGRET_MAX))
    return np.where(np.isnan(regret), _means(regret), regret)


def _means(columns: Floats) -> Floats:
    """The mean of what is known of each column, FAILED's half where nothing is; shape (m,)."""
    known = np.isfinite(columns)
    total = np.where(known, columns, 0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), FAILED / 2)
