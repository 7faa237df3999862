"""Energy of runs, where meters measured it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from crosswind.data.schema.answers.energy import MeasuredEnergy, MeterScope
from crosswind.data.schema.carbon import CarbonIntensity, Energy, Origin
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run
from crosswind.data.store.run_tags import ENERGY_TAG, node_count_of
from crosswind.data.store.store import Store
from crosswind.models.energy.meters import ACCELERATORS, PROCESSORS, WHOLE_NODE, counted, places_of_runs, sensed

COVERAGE_MIN = 0.9  # of a run's time, on each of its nodes


@dataclass(frozen=True)
class Measured:
    """Energy of a run's nodes, whoever else was on them, over `seconds`: the run's, or its job's for meter `job`.

    `coverage` is the share of that time that the worst node's meter covers; the rest is taken to be like it.
    """

    energy: Energy
    scope: MeterScope
    meter: str
    coverage: float
    node_count: int
    seconds: float

    @property
    def node_watts(self) -> float:
        """Mean power of a node."""
        return self.energy.joules / self.seconds / self.node_count


def energy_of_run(store: Store, run: Run, intensity: CarbonIntensity | None) -> MeasuredEnergy | None:
    """The energy that meters showed of one run; None where they cover less than 90 % of its time on any node."""
    measured = measured_energy(store, [run]).get(run.run_id)
    return None if measured is None else energy_of(measured, intensity)


def energy_of(measured: Measured, intensity: CarbonIntensity | None) -> MeasuredEnergy:
    """Return what was measured as an answer, with its carbon where the intensity is known."""
    return MeasuredEnergy(
        measured.energy.joules,
        measured.energy.origin,
        measured.scope,
        measured.meter,
        measured.coverage,
        measured.node_watts,
        None if intensity is None else intensity.of(measured.energy).grams,
    )


def measured_energy(store: Store, runs: Sequence[Run]) -> Mapping[str, Measured]:
    """Energy by run id, of the runs whose meters cover at least 90 % of the time on every node.

    What a run's own record states comes first. The meters are, in this order, the blade controller, sensors of whole
    nodes, counters of processors and accelerators, and the scheduler's account of a job that held this run alone. Each
    takes a query or two for all runs.
    Raises: MalformedError for a damaged file.
    """
    measured = _by_records(runs)
    left = [run for run in runs if run.nodes and run.run_id not in measured and run.seconds and run.seconds > 0]
    for meter in METERS:
        if left:
            measured |= meter(store, left)
            left = [run for run in left if run.run_id not in measured]
    return measured


def _by_records(runs: Sequence[Run]) -> dict[str, Measured]:
    """Energy of runs whose record states it and their nodes, as tables of runs do."""
    stated = {run.run_id: (run, _number(run.tags.get(ENERGY_TAG)), node_count_of(run)) for run in runs}
    return {
        run_id: Measured(Energy(joules, Origin.MEASURED), MeterScope.RECORDED, "record", 1.0, nodes, run.seconds)
        for run_id, (run, joules, nodes) in stated.items()
        if joules is not None and nodes and run.seconds and run.seconds > 0
    }


def _number(text: str | None) -> float | None:
    """Return a tag's number; None unless it is finite and above 0."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 < number < math.inf else None


def measured_job(job: Job) -> Measured | None:
    """The energy that the scheduler recorded for a job that has ended; None where it recorded none."""
    nodes = job.node_count or len(job.nodes)
    if not (job.ended_ns and nodes and job.seconds and job.seconds > 0):
        return None
    if job.energy_joules is None or not 0 < job.energy_joules < math.inf:
        return None
    return Measured(Energy(job.energy_joules, Origin.MEASURED), MeterScope.ACCOUNTED, "job", 1.0, nodes, job.seconds)


def _by_controllers(store: Store, runs: Sequence[Run]) -> dict[str, Measured]:
    places = places_of_runs(runs)
    return _whole(runs, places, counted(store.lake, places, WHOLE_NODE), (MeterScope.NODE, "pm_counters"))


def _by_sensors(store: Store, runs: Sequence[Run]) -> dict[str, Measured]:
    places = places_of_runs(runs)
    return _whole(runs, places, sensed(store.lake, places), (MeterScope.NODE, "sensor"))


def _by_chips(store: Store, runs: Sequence[Run]) -> dict[str, Measured]:
    """Processors and accelerators together where both are metered, or one of them alone, as the scope says."""
    places = places_of_runs(runs)
    processors = counted(store.lake, places, PROCESSORS)
    accelerators = _added([counted(store.lake, places, counter) for counter in ACCELERATORS])
    together = _added([processors, accelerators])
    together = together.loc[processors.index.intersection(accelerators.index)]
    return {
        **_whole(runs, places, processors, (MeterScope.PROCESSORS, "rapl")),
        **_whole(runs, places, accelerators, (MeterScope.ACCELERATORS, "gpu")),
        **_whole(runs, places, together, (MeterScope.CHIPS, "rapl+gpu")),
    }


def _added(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the sum of several counters' joules at each place, and their least coverage."""
    filled = [table for table in tables if not table.empty]
    if len(filled) < 2:
        return filled[0] if filled else tables[0]
    return pd.concat(filled).groupby(level="place").agg({"joules": "sum", "coverage": "min"})


def _by_accounts(store: Store, runs: Sequence[Run]) -> dict[str, Measured]:
    """Energy of jobs that held one run alone, on as many nodes, for at least 90 % of their time."""
    in_jobs = [run for run in runs if run.job_id]
    ids = {run.job_id for run in in_jobs if run.job_id}
    jobs = store.jobs.all_named(ids)
    with store.catalog.read() as session:
        counts = session.runs.counts_by_job(ids if jobs else ())
    measured = {}
    for run in in_jobs:
        job = next((candidate for candidate in jobs.get(run.job_id or "", ()) if candidate.system == run.system), None)
        of_job = None if job is None else measured_job(job)
        if of_job is not None and counts.get((run.system, run.job_id or "")) == 1 and _fills(run, of_job):
            measured[run.run_id] = of_job
    return measured


def _fills(run: Run, measured: Measured) -> bool:
    nodes = len(set(run.nodes))
    return (
        nodes == measured.node_count
        and COVERAGE_MIN * measured.seconds <= (run.seconds or 0.0) <= measured.seconds / COVERAGE_MIN
    )


def _whole(
    runs: Sequence[Run], places: pd.DataFrame, table: pd.DataFrame, of: tuple[MeterScope, str]
) -> dict[str, Measured]:
    """Measure the runs whose nodes are all covered for COVERAGE_MIN of the time."""
    if table.empty:
        return {}
    of_nodes = places[["place", "run"]].join(table, on="place").fillna({"joules": 0.0, "coverage": 0.0})
    by_run = of_nodes.groupby("run").agg(
        joules=("joules", "sum"), coverage=("coverage", "min"), nodes=("place", "size")
    )
    measured = {}
    for number, row in by_run[by_run["coverage"] >= COVERAGE_MIN].iterrows():
        run = runs[int(str(number))]
        energy = Energy(float(row["joules"]), Origin.MEASURED)
        coverage = min(float(row["coverage"]), 1.0)
        measured[run.run_id] = Measured(energy, *of, coverage, int(row["nodes"]), run.seconds or 0.0)
    return measured


METERS = (_by_controllers, _by_sensors, _by_chips, _by_accounts)
