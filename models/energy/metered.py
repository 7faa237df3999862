"""Metered runs and jobs of a store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.devices.computing import computing_device
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run, RunState, cohort_key
from crosswind.data.schema.trial import Configuration
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.energy.measured import Measured, measured_energy, measured_job

RUNS_MAX = 100  # of the workload, and of the system; the newest
JOBS_MAX = 200
SETTLED_NS = 3600 * 10**9  # after its end, by when all samples of a run have arrived


@dataclass(frozen=True)
class MeteredRun:
    """A run, or a job of which no run is known; `cohort` is as `cohort_key` says, `accelerator` empty for none."""

    cohort: str
    workload: str
    system: str
    ranks_per_node: float | None  # None for a job
    measured: Measured
    accelerator: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)  # of its parameters, those above 0


@dataclass
class Meters:
    """Metered runs of one store; measurements are cached, and read again only while samples may still arrive."""

    store: Store
    _measured_runs: dict[str, Measured | None] = field(default_factory=dict, init=False, repr=False)

    def runs(self, workload: str, system: str) -> tuple[MeteredRun, ...]:
        """The newest metered runs and jobs of the workload anywhere, and of the system. Raises: MalformedError."""
        wanted = (
            RunFilter(workload=workload, state=RunState.COMPLETED),
            RunFilter(system=system, state=RunState.COMPLETED),
        )
        runs = {run.run_id: run for run_filter in wanted for run in all_runs(self.store, run_filter, limit=RUNS_MAX)}
        energies = self._measured(list(runs.values()))
        of_runs = [_of_run(runs[run_id], measured) for run_id, measured in energies.items()]
        in_jobs = {(run.system, run.job_id) for run in runs.values()}
        return (
            *of_runs,
            *_of_jobs(job for job in self._jobs(workload, system) if (job.system, job.job_id) not in in_jobs),
        )

    def _measured(self, runs: Sequence[Run]) -> dict[str, Measured]:
        news = [run for run in runs if run.run_id not in self._measured_runs]
        fresh = measured_energy(self.store, news)
        newest_ns = max((run.ended_ns or 0 for run in runs), default=0)
        for run in news:
            if run.run_id in fresh or newest_ns - (run.ended_ns or 0) > SETTLED_NS:
                self._measured_runs[run.run_id] = fresh.get(run.run_id)
        energies = {run.run_id: fresh.get(run.run_id) or self._measured_runs.get(run.run_id) for run in runs}
        return {run_id: measured for run_id, measured in energies.items() if measured is not None}

    def _jobs(self, workload: str, system: str) -> Iterable[Job]:
        named = self.store.jobs.of_name(workload, system=None, limit=JOBS_MAX)
        here = [job for job in self.store.jobs.find(limit=JOBS_MAX) if job.system == system]
        return {(job.system, job.job_id): job for job in (*named, *here)}.values()


def accelerator_of(facts: Facts, configuration: Configuration) -> str:
    """The accelerator of a run, in the name of its data sheet where that is known; empty if none is."""
    return "" if facts.accelerators_per_node == 0 else computing_device(facts, configuration)


def positive_numbers(configuration: Configuration) -> dict[str, float]:
    """Return the parameters that are numbers above 0."""
    return {
        name: float(value)
        for name, value in configuration.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    }


def _of_run(run: Run, measured: Measured) -> MeteredRun:
    ranks = None if run.world_size is None else run.world_size / measured.node_count
    named = (cohort_key(run), run.workload, run.system)
    accelerator, numbers = accelerator_of(run.facts, run.configuration), positive_numbers(run.configuration)
    return MeteredRun(*named, ranks, measured, accelerator, numbers)


def _of_jobs(jobs: Iterable[Job]) -> list[MeteredRun]:
    metered = []
    for job in jobs:
        measured = measured_job(job) if job.state == "COMPLETED" else None
        if measured is not None:
            as_run = Run(job.job_id, job.name, job.system, RunState.COMPLETED, world_size=job.node_count)
            metered.append(MeteredRun(cohort_key(as_run), job.name, job.system, None, measured))
    return metered
