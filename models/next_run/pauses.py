"""The spread of a cohort's first runs after a pause of months, in which software and machines changed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

import numpy as np

from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.next_run.cohort_store import PAUSE_NS, Cohort, pauses_in
from crosswind.models.next_run.new_cohort_model import around
from crosswind.models.surrogate import LEVELS
from crosswind.models.surrogate.log_errors import quantiles_of

PAUSES_MIN = 8  # fewer say nothing about their spread


@dataclass
class Pauses:
    """Offsets (n_levels,) of the log seconds after a pause, 0 while too few cohorts paused."""

    _offsets: Floats = field(default_factory=lambda: np.zeros(len(LEVELS)), init=False, repr=False)

    def fit(self, cohorts: Iterable[Cohort]) -> Self:
        """Learns from all cohorts that ran on after a pause."""
        changes = np.array([change for cohort in cohorts for change in _changes(cohort)])
        if len(changes) >= PAUSES_MIN:
            self._offsets = quantiles_of(changes - np.median(changes))
        return self

    def widened(self, prediction: Prediction, paused: list[bool]) -> Prediction:
        """The prediction, one row a cohort, with wider rows where the cohort paused."""
        if not any(paused) or not self._offsets.any():
            return prediction
        medians, values = prediction.at(0.5), prediction.values.copy()
        offsets = np.log(values) - np.log(medians)[:, None]
        wider = np.sign(np.array(LEVELS) - 0.5) * np.hypot(offsets, self._offsets)
        values[paused] = around(medians, wider, np.zeros(len(medians))).values[paused]
        return Prediction(prediction.levels, values)


def has_paused(cohort: Cohort, started_ns: int | None) -> bool:
    """Return whether a run that begins then is the first after a pause."""
    return started_ns is not None and started_ns - max(cohort.started_ns) >= PAUSE_NS


def _changes(cohort: Cohort) -> Iterator[float]:
    """Yield the log ratio of the runs between a pause and the next to the median of all before, pause by pause."""
    logs = np.log(cohort.seconds)
    for start, end in pairwise([*pauses_in(cohort.started_ns), len(logs)]):
        yield float(np.median(logs[start:end]) - np.median(logs[:start]))
