"""Transfer of a workload to a system where one cohort of it ran, from the systems where it ran more."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.next_run.cohort_store import Cohort
from crosswind.models.next_run.describe import SYSTEM, WORKLOAD, as_learned, described, numbers_in, with_columns
from crosswind.models.surrogate.gaussian_process import GaussianProcessSurrogate
from crosswind.models.transfer.anchored import AnchoredTransfer

OWN = 1  # cohort on the system: from two on, the stack of all systems predicts better, as simulated systems showed
ELSEWHERE_MIN = 4
ELSEWHERE_MAX = 500  # the newest


@dataclass
class SystemTransfer:
    """The prediction of the other systems, times the ratio of the one cohort on this system to it."""

    transfer: AnchoredTransfer
    columns: tuple[str, ...]
    numbers: tuple[str, ...]  # those of them that were numbers

    def predict(self, table: pd.DataFrame) -> Prediction:
        """Quantiles of cohorts' usual seconds on the system, one row a cohort."""
        return self.transfer.predict(as_learned(table, self.columns, self.numbers))


def system_transfer(cohorts: Sequence[Cohort], system: str, seed: int) -> SystemTransfer | None:
    """Learn from all cohorts of a workload; None unless one ran on the system and ELSEWHERE_MIN elsewhere."""
    own = [cohort for cohort in cohorts if cohort.question.system == system]
    elsewhere = [cohort for cohort in cohorts if cohort.question.system != system][-ELSEWHERE_MAX:]
    if len(own) != OWN or len(elsewhere) < ELSEWHERE_MIN:
        return None
    table = described([cohort.question for cohort in (*elsewhere, *own)]).drop(columns=WORKLOAD)
    varying = tuple(str(name) for name in table if name == SYSTEM or table[name].nunique(dropna=False) > 1)
    rows = with_columns(table, varying)
    transfer = AnchoredTransfer(GaussianProcessSurrogate(seed), SYSTEM)
    sources, target = rows[: len(elsewhere)], rows[len(elsewhere) :].reset_index(drop=True)
    return SystemTransfer(transfer.fit(sources, _medians(elsewhere), target, _medians(own)), varying, numbers_in(rows))


def _medians(cohorts: Sequence[Cohort]) -> Floats:
    return np.array([cohort.median for cohort in cohorts], dtype=np.float64)
