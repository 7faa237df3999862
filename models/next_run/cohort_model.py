"""Predictions of what the next run of a cohort that ran before will take."""

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
    """Cohorts' levels and spreads; a cautious band while no cohort ran thrice."""

    conditions: tuple[str, ...] = ()
    _spread: CohortSpread | None = field(default=None, init=False, repr=False)

    def fit(self, cohorts: Sequence[str], seconds: Floats, conditions: pd.DataFrame | None) -> Self:
        """Learns from runs, oldest first; conditions are one row each, None where nobody sampled."""
        table = pd.DataFrame(index=range(len(cohorts))) if conditions is None else conditions
        self.conditions = tuple(map(str, table.columns))
        try:
            self._spread = CohortSpread().fit(cohorts, seconds, table)
        except InvalidInputError:  # too few repeats to tell a spread, which is no fault of the question
            self._spread = None
            return self
        for place in _rarely_run(cohorts):
            self._spread.remember(cohorts[place], float(seconds[place]), table.iloc[place : place + 1])
        return self

    def observe(self, cohort: str, seconds: float, conditions: pd.DataFrame | None) -> None:
        """Counts one more run that has ended; conditions before it are one row."""
        if self._spread is not None:
            self._spread.observe(cohort, seconds, self._told(1, conditions))

    def predict(self, cohorts: Sequence[str], medians: Floats, conditions: pd.DataFrame | None) -> Prediction:
        """Quantiles of seconds; medians (n_cohorts,) are of the runs that each had."""
        if self._spread is None:
            return around(medians, CAUTIOUS, np.zeros(len(cohorts)))
        return self._spread.predict(cohorts, self._told(len(cohorts), conditions), expected=medians)

    def _told(self, rows: int, conditions: pd.DataFrame | None) -> pd.DataFrame:
        """The conditions that were learned, NaN where they are not known."""
        if conditions is None:  # to find nothing in a table takes pandas a millisecond
            return pd.DataFrame(np.full((rows, len(self.conditions)), np.nan), columns=list(self.conditions))
        if tuple(conditions.columns) == self.conditions:
            return conditions
        return conditions.reindex(columns=list(self.conditions)).astype("float64")


def _rarely_run(cohorts: Sequence[str]) -> list[int]:
    """Places, in order, of the newest runs of the cohorts of which no run is among those that spreads are told from."""
    recent = set(cohorts[-ROWS_MAX:])
    places: dict[str, list[int]] = {}
    for place in range(len(cohorts) - ROWS_MAX - 1, -1, -1):
        own = places.setdefault(cohorts[place], [])
        if cohorts[place] not in recent and len(own) < RARE_RUNS:
            own.append(place)
    return sorted(place for own in places.values() for place in own)
