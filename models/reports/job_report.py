"""One job on one page."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.energy import MeasuredEnergy
from crosswind.data.schema.answers.explanations import Explanation
from crosswind.data.schema.answers.jobs import JobReport, JobRun
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import all_runs, outcomes
from crosswind.data.store.job_usage import cpu_seconds, limit_seconds, listed_job, peak_memory_bytes
from crosswind.data.store.store import Store
from crosswind.models.energy.measured import energy_of, energy_of_run, measured_job

RUNS_MAX = 20  # of one job that are explained, the newest
SECOND = 1e-9
Explain = Callable[[Store, Sequence[Run]], Mapping[str, Explanation]]


def job_report(
    store: Store, job_id: str, system: str | None = None, *, explain: Explain, intensity: CarbonIntensity | None = None
) -> JobReport:
    """Return the report of a job; the system may be None where only one has a job of this id.

    Raises: NotFoundError, InvalidInputError where several systems have one.
    """
    job = _job(store, job_id, system)
    runs = all_runs(store, RunFilter(system=job.system, job_id=job_id))
    used, limit, cpu = _used_seconds(job), limit_seconds(job), cpu_seconds(job)
    held = used * job.cpu_count if used and job.cpu_count else None
    return JobReport(
        job=listed_job(job),
        queued_seconds=_between(job.submitted_ns, job.started_ns),
        used_seconds=used,
        limit_ratio=_ratio(used, limit),
        cpu_seconds=cpu,
        cpu_ratio=_ratio(cpu, held),
        peak_memory_bytes=peak_memory_bytes(job),
        run_ratio=_run_ratio(job, runs),
        energy=_energy(store, job, intensity),
        run_count=len(runs),
        runs=_runs(store, runs[-RUNS_MAX:], explain),
    )


def _job(store: Store, job_id: str, system: str | None) -> Job:
    jobs = [job for job in store.jobs.named(job_id) if system in (None, job.system)]
    if not jobs:
        where = f" of system {system!r}" if system else ""
        raise NotFoundError(f"job {job_id!r}{where} is not stored: crosswind jobs lists those that are")
    if len(jobs) > 1:
        systems = ", ".join(job.system for job in jobs)
        raise InvalidInputError(f"job {job_id!r} is one of each of {systems}: expected --system with one of them")
    return jobs[0]


def _used_seconds(job: Job) -> float | None:
    if job.seconds is None and job.started_ns is not None and job.state == "RUNNING":
        return max(0.0, (time.time_ns() - job.started_ns) * SECOND)
    return job.seconds


def _between(first_ns: int | None, second_ns: int | None) -> float | None:
    return None if first_ns is None or second_ns is None else (second_ns - first_ns) * SECOND


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _run_ratio(job: Job, runs: Sequence[Run]) -> float | None:
    """Return the share of the job's time in which a run ran; runs next to each other count once."""
    begin, end = job.started_ns, job.ended_ns
    if begin is None or end is None or end <= begin or not runs:
        return None
    covered, reached = 0, begin
    for run in sorted(runs, key=lambda run: run.started_ns or 0):
        if run.started_ns is not None and run.ended_ns is not None:
            covered += max(0, min(run.ended_ns, end) - max(run.started_ns, reached))
            reached = max(reached, run.ended_ns)
    return covered / (end - begin)


def _energy(store: Store, job: Job, intensity: CarbonIntensity | None) -> MeasuredEnergy | None:
    """Return the energy by the scheduler's account, or else by the meters of the job's nodes."""
    if accounted := measured_job(job):
        return energy_of(accounted, intensity)
    span = Run(job.job_id, job.name, job.system, RunState.COMPLETED, nodes=job.nodes)
    return energy_of_run(store, replace(span, started_ns=job.started_ns, ended_ns=job.ended_ns), intensity)


def _runs(store: Store, runs: Sequence[Run], explain: Explain) -> tuple[JobRun, ...]:
    explanations = explain(store, runs) if runs else {}
    return tuple(
        JobRun(
            run_id=run.run_id,
            workload=run.workload,
            state=run.state,
            run_seconds=run.seconds,
            step_p50_seconds=run.step_p50_seconds,
            verdict=explanations[run.run_id].verdict,
            cause=explanations[run.run_id].cause,
            sentence=explanations[run.run_id].sentence,
        )
        for run in outcomes(store, runs)
    )
