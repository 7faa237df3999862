"""Predictions of the next run of a cohort that has run before."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.next_run.new_cohort_model import CAUTIOUS, around
from crosswind.models.spread import CohortSpread
from crosswind.models.spread.spread import ROWS_MAX

RARE_RUNS = 20  # of a cohort that did not run lately, the newest


@dataclass
class CohortModel:
    """Levels and spreads of cohorts; a cautious band while no cohort has three runs."""

    conditions: tuple[str, ...] = ()
    _spread: CohortSpread | None = field(default=None, init=False, repr=False)

    def fit(self, cohorts: Sequence[str], seconds: Floats, conditions: pd.DataFrame | None) -> Self:
        """Learns from runs, oldest first; conditions have one row a run, None where nothing was sampled."""
        table = pd.DataFrame(index=range(len(cohorts))) if conditions is None else conditions
        self.conditions = tuple(map(str, table.columns))
        try:
            self._spread = CohortSpread().fit(cohorts, seconds, table)
        except InvalidInputError:  # too few repeats to learn a spread
            self._spread = None
            return self
        for place in _rarely_run(cohorts):
            self._spread.observe_level(cohorts[place], float(seconds[place]), table.iloc[place : place + 1])
        return self

    def observe(self, cohort: str, seconds: float, conditions: pd.DataFrame | None) -> None:
        """Adds one more run that has ended; the conditions before it are one row."""
        if self._spread is not None:
            self._spread.observe(cohort, seconds, self._as_learned(1, conditions))

    def predict(self, cohorts: Sequence[str], medians: Floats, conditions: pd.DataFrame | None) -> Prediction:
        """Quantiles of seconds, one row a cohort; medians (n_cohorts,) are of its earlier runs, in seconds."""
        if self._spread is None:
            return around(medians, CAUTIOUS, np.zeros(len(cohorts)))
        return self._spread.predict(cohorts, self._as_learned(len(cohorts), conditions), expected=medians)

    def _as_learned(self, rows: int, conditions: pd.DataFrame | None) -> pd.DataFrame:
        """The conditions in the columns learned from, NaN where unknown."""
        if conditions is None:  # reindexing an empty table would take a millisecond
            return pd.DataFrame(np.full((rows, len(self.conditions)), np.nan), columns=list(self.conditions))
        if tuple(conditions.columns) == self.conditions:
            return conditions
        return conditions.reindex(columns=list(self.conditions)).astype("float64")


def _rarely_run(cohorts: Sequence[str]) -> list[int]:
    """Places, in order, of the newest runs of cohorts that have no run among those that spreads are learned from."""
    recent = set(cohorts[-ROWS_MAX:])
    places: dict[str, list[int]] = {}
    for place in range(len(cohorts) - ROWS_MAX - 1, -1, -1):
        own = places.setdefault(cohorts[place], [])
        if cohorts[place] not in recent and len(own) < RARE_RUNS:
            own.append(place)
    return sorted(place for own in places.values() for place in own)
