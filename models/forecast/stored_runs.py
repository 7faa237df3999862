"""Completed runs of the store as past runs that the forecast of a running one learns from."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.run import Run, cohort_key
from crosswind.data.store.store import Store
from crosswind.models.forecast.past_runs import STEPS_MIN, PastRun

PREEMPTIONS = "preemptions"  # ln(1 + times the loop's thread was preempted in a step), of the rank with the fewest
_STEPS = """
select run_id, step, max(duration_seconds) as seconds, min(involuntary_context_switches) as preempted
from step where run_id in (select unnest(?)) and rank is not null and duration_seconds > 0
group by run_id, step order by run_id, step
"""


def past_runs(store: Store, runs: Sequence[Run]) -> list[PastRun]:
    """The runs' steps in the order given; those of fewer than STEPS_MIN steps are left out.

    A step lasts as long as on its slowest rank. Where all ranks recorded it, `preemptions` is a signal.
    """
    by_run = {str(run_id): rows for run_id, rows in _steps(store, runs).groupby("run_id")}
    recorded = [(run, by_run[run.run_id]) for run in runs if run.run_id in by_run]
    return [past_run(run, rows) for run, rows in recorded if len(rows) >= STEPS_MIN]


def steps_so_far(store: Store, run: Run) -> PastRun:
    """The recorded steps of one run, which may still be running."""
    return past_run(run, _steps(store, [run]))


def past_run(run: Run, steps: pd.DataFrame) -> PastRun:
    """A run from its rows of columns `seconds` and `preempted`, one a step in order."""
    preempted = steps["preempted"].to_numpy(np.float64, na_value=np.nan)
    signals = {} if np.isnan(preempted).any() else {PREEMPTIONS: np.log1p(preempted)}
    return PastRun(cohort_key(run), steps["seconds"].to_numpy(np.float64), signals)


def _steps(store: Store, runs: Sequence[Run]) -> pd.DataFrame:
    return store.lake.frame(_STEPS, [[run.run_id for run in runs]], within=time_of(runs))
