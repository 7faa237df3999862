"""Earlier contexts as hypotheses about a new one: the results of the variants there, and the similarity."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from crosswind.data.schema.prediction import Floats
from crosswind.models.tuner.variants.experience import Context
from crosswind.models.tuner.variants.hypotheses import FAILED, Hypotheses
from crosswind.models.tuner.variants.likeness import Likeness

REGRET_MAX = 9.0  # ten times the best is as bad as any: beyond it limits decide, not the variant
CONTEXTS_MIN = 8  # from fewer, no features are learned
FORECAST = 0.7  # of the weight, before any trial, is the forecast's: fitted on kinds of matrices left out in turn


@dataclass(frozen=True)
class Precedents:
    """The results of m variants in n earlier contexts, and how like them a new one is.

    A regret (n, m) is the objective over the context's best, minus 1, at most REGRET_MAX, and FAILED where it failed;
    failed (n, m) is 1.0 there. Where a variant was not measured, both are its mean over the other contexts.
    """

    regret: Floats
    failed: Floats
    is_measured: npt.NDArray[np.bool_]
    likeness: Likeness | None

    @classmethod
    def of(cls, contexts: Sequence[Context], objectives: Floats, failed: Floats, seed: int) -> Self:
        """Take objectives (n, m), NaN where there is none, and whether it failed (n, m), NaN where not measured."""
        is_solved = np.asarray(np.isfinite(objectives).any(axis=1))
        solved = [context for context, is_one in zip(contexts, is_solved.tolist(), strict=True) if is_one]
        objectives, failed = objectives[is_solved], failed[is_solved]
        best = np.nanmin(objectives, axis=1, keepdims=True, initial=np.inf)
        regret = np.where(failed == 1, FAILED, np.minimum(objectives / best - 1, REGRET_MAX))
        is_measured = ~np.isnan(failed)
        regret = np.where(is_measured, regret, _means(regret))
        failed = np.where(is_measured, failed, _means(failed))
        is_learned = len(solved) >= CONTEXTS_MIN and any(context.features for context in solved)
        likeness = Likeness.of(solved, np.log1p(regret), seed) if is_learned else None
        return cls(regret, failed, is_measured, likeness)

    def about(self, context: Context) -> Hypotheses:
        """Return the hypotheses about a new context, before any trial on it: each earlier one, and a forecast.

        The forecast is the mean by likeness, of logarithms, since a few large regrets tell little.
        """
        if self.likeness is None:
            return Hypotheses(self.regret, self.failed, np.full(len(self.regret), 1 / max(len(self.regret), 1)))
        weights = self.likeness.weights(context)
        return Hypotheses(
            np.vstack([self.regret, np.expm1(self._forecast(weights, np.log1p(self.regret)))]),
            np.vstack([self.failed, self._forecast(weights, self.failed)]),
            np.append((1 - FORECAST) * weights, FORECAST),
        )

    def _forecast(self, weights: Floats, values: Floats) -> Floats:
        """Return each variant's weighted mean over the contexts in which it was measured, over all if in none."""
        shares = weights @ self.is_measured
        means = (weights @ (values * self.is_measured)) / np.where(shares > 0, shares, 1)
        return np.asarray(np.where(shares > 0, means, weights @ values))


def _means(columns: Floats) -> Floats:
    """Return the mean of each column without its gaps, half of FAILED where it is all gaps; shape (m,)."""
    is_finite = np.isfinite(columns)
    total = np.where(is_finite, columns, 0).sum(axis=0)
    return np.where(is_finite.any(axis=0), total / np.maximum(is_finite.sum(axis=0), 1), FAILED / 2)
