"""Completed runs of the store as measurements of the weather: ratios to their cohort's earlier runs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.store.features import summaries
from crosswind.data.store.store import Store

EARLIER_MIN = 3  # of a cohort, for a ratio of its next run
EARLIER_MAX = 50  # newest of them that count


def stored_ratios(store: Store, runs: Sequence[Run]) -> pd.DataFrame:
    """Columns started_ns known_ns workload log_ratio, a row for each run with enough earlier ones, oldest first.

    The ratio is that of the mean step to the median of the mean steps of the cohort's runs that had ended before.
    """
    table = summaries(store, runs)
    timed = table[table["started_ns"].notna() & table["run_seconds"].notna() & (table["step_mean_seconds"] > 0)]
    known_ns = timed["started_ns"].astype("int64") + (timed["run_seconds"] * 1e9).round().astype("int64")
    ordered = timed.assign(known_ns=known_ns).astype({"started_ns": "int64"}).sort_values("known_ns", kind="stable")
    log_ratio = np.full(len(ordered), np.nan)
    for places in ordered.reset_index(drop=True).groupby("cohort").indices.values():
        log_ratio[places] = _ratios(ordered.iloc[places])
    kept = ordered.assign(log_ratio=log_ratio)
    columns = ["started_ns", "known_ns", "workload", "log_ratio"]
    return kept.loc[kept["log_ratio"].notna(), columns].reset_index(drop=True)


def _ratios(cohort: pd.DataFrame) -> Floats:
    started, known_ns = cohort["started_ns"].to_numpy(), cohort["known_ns"].to_numpy()
    logs = np.log(cohort["step_mean_seconds"].to_numpy(np.float64))
    ratios = np.full(len(cohort), np.nan)
    for row, ended in enumerate(np.searchsorted(known_ns, started, side="right")):
        if ended >= EARLIER_MIN:
            ratios[row] = logs[row] - np.median(logs[max(ended - EARLIER_MAX, 0) : ended])
    return ratios
