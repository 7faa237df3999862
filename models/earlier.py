"""The earlier runs that a prediction learns from, and what of them is predicted: the finest that was recorded."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.features import all_runs, summaries
from crosswind.data.job import Job
from crosswind.data.run import Run, RunState
from crosswind.data.store import Store
from crosswind.models.explain.explain import explain_runs
from crosswind.models.explain.explanation import Verdict

HISTORY_RUNS = 2000  # the newest; older ones say little about the next
SCALE = "world_size"


class Outcome(StrEnum):
    """What is predicted: a run's median step time, its run time, or that of a job that no run is known of."""

    STEP = "step_p50_seconds"
    RUN = "run_seconds"
    JOB = "job_seconds"


@dataclass(frozen=True)
class Earlier:
    """What ran before, oldest first, as `predict_next` takes it; `left_out` were slow for a cause that was found."""

    history: pd.DataFrame
    outcome: Outcome
    left_out: int = 0


def earlier_runs(store: Store, workload: str, system: str) -> Earlier:
    """The completed runs of a workload by their steps; else by their run times; else the jobs of that name.

    The scale of a job is its number of nodes: nobody tells how many ranks it had.
    """
    wanted = RunFilter(workload=workload, system=system, state=RunState.COMPLETED)
    runs = [run for run in all_runs(store, wanted, limit=HISTORY_RUNS) if run.world_size is not None]
    if runs:
        return _of_runs(store, runs)
    jobs = store.jobs.of_name(workload, system=system, limit=HISTORY_RUNS)
    return Earlier(_of_jobs([job for job in jobs if job.state == "COMPLETED" and job.node_count]), Outcome.JOB)


def _of_runs(store: Store, runs: list[Run]) -> Earlier:
    found = explain_runs(store, runs)
    slow = {
        run.run_id for run in runs if found[run.run_id].verdict is Verdict.SLOW and found[run.run_id].cause is not None
    }
    kept = [run for run in runs if run.run_id not in slow]
    told = summaries(store, kept)
    outcome = Outcome.STEP if told[Outcome.STEP].notna().any() else Outcome.RUN
    return Earlier(_history(kept, told[outcome].astype("float64")), outcome, len(slow))


def _history(runs: Sequence[Run], seconds: "pd.Series[float]") -> pd.DataFrame:
    history = pd.DataFrame(
        {
            "configuration": pd.Series([dict(run.configuration) for run in runs], dtype=object),
            SCALE: pd.Series([run.world_size for run in runs], dtype="int64"),
            "seconds": seconds,
        }
    )
    return history[history["seconds"] > 0].reset_index(drop=True)


def _of_jobs(jobs: Sequence[Job]) -> pd.DataFrame:
    history = pd.DataFrame(
        {
            "configuration": pd.Series([{} for _ in jobs], dtype=object),
            SCALE: pd.Series([job.node_count for job in jobs], dtype="int64"),
            "seconds": pd.Series([job.seconds for job in jobs], dtype="float64"),
        }
    )
    return history[history["seconds"] > 0].reset_index(drop=True)
