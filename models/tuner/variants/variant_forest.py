"""Forecasts of each variant by the context's features, for contexts that are unlike all earlier ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import ExtraTreesRegressor

from crosswind.data.schema.prediction import Floats

TREES = 50
VARIANTS_MAX = 64  # a forest each: beyond it, learning would take longer than a trial
FAILURE_WEIGHT = 0.1  # small, so that splits follow the regrets


@dataclass(frozen=True)
class Records:
    """The results of m variants in n contexts, each (n, m): regret, failed (1.0), and whether it was measured.

    Gaps are filled with the variant's mean over the other contexts.
    """

    regret: Floats
    failed: Floats
    is_measured: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Forecast:
    """A forest for each variant, as in SATzilla: a variant's cost depends on few features of its own.

    Source: Xu, Hutter, Hoos and Leyton-Brown 2008, "SATzilla: portfolio-based algorithm selection for SAT" (one model a
    solver). Regrets are learned as logarithms, since a few large ones tell little.
    """

    forests: Sequence[ExtraTreesRegressor]

    @classmethod
    def of(cls, features: Floats, records: Records, seed: int) -> "Forecast | None":
        """Fit features (n, k), each variant by the contexts it was measured in; None for very many variants."""
        if records.regret.shape[1] > VARIANTS_MAX:
            return None
        return cls([_forest(features, records, place, seed) for place in range(records.regret.shape[1])])

    def of_context(self, features: Floats) -> tuple[Floats, Floats]:
        """Return regrets and failures, each of shape (1, m), from features (1, k)."""
        predicted = np.array([forest.predict(features)[0] for forest in self.forests])
        return np.expm1(predicted[:, 0])[None], predicted[:, 1][None] / FAILURE_WEIGHT


def _forest(features: Floats, records: Records, place: int, seed: int) -> ExtraTreesRegressor:
    used = records.is_measured[:, place]
    used = used if used.any() else np.ones_like(used)
    targets = np.column_stack([np.log1p(records.regret[used, place]), FAILURE_WEIGHT * records.failed[used, place]])
    return ExtraTreesRegressor(TREES, max_features=0.5, random_state=seed).fit(features[used], targets)
