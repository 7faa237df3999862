"""The time of a job outside the run in it: loading, connecting, ending."""

import numpy as np

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store

RUNS = 50  # the newest
HIGH = 0.9  # quantile of a few jobs' overheads; a limit must hold for the slow ones too


def measured_startup(store: Store, workload: str, system: str) -> float:
    """The 0.9 quantile of job minus run time over the newest runs whose jobs held no other; 0 where none is known."""
    wanted = RunFilter(workload=workload, system=system, state=RunState.COMPLETED)
    runs = [run for run in all_runs(store, wanted, limit=RUNS) if run.job_id and run.seconds]
    alone = _alone(runs)
    jobs = store.jobs.all_named([run.job_id for run in alone if run.job_id])
    overheads = [
        job.seconds - run.seconds
        for run in alone
        for job in jobs.get(run.job_id or "", [])
        if job.system == system and job.seconds and run.seconds and job.seconds >= run.seconds
    ]
    return float(np.quantile(overheads, HIGH)) if overheads else 0.0


def _alone(runs: list[Run]) -> list[Run]:
    times: dict[str | None, int] = {}
    for run in runs:
        times[run.job_id] = times.get(run.job_id, 0) + 1
    return [run for run in runs if times[run.job_id] == 1]
