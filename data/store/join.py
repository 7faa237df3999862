"""Samples joined to jobs and runs by node, device and time; no sample carries a job's id.

The rows of a job are those of its nodes within its allocations, or within the scheduler's accounting where no agent saw
an allocation. They are narrowed to the job's devices where these are known: its ranks in set `process`, its GPUs in
`gpu`. The column `shared_with` counts the other jobs that had an allocation on the node at that time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from crosswind.data.catalog.catalog import Session
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.parts import ALWAYS
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.job import Job
from crosswind.data.schema.occupancy import Allocation, Placement
from crosswind.data.schema.run import Run
from crosswind.data.store.jobs import Jobs
from crosswind.data.store.node_intervals import FOREVER, NodeInterval, Stretch, stretches
from crosswind.data.store.store import Store

MAX_RUNS = 10_000  # of one job
_ROWS = """
with narrowed as ({narrowed})
select s.*, w.shared_with from "{name}" s
join stretches w on s.node = w.node and s.ts_ns >= w.begin_ns and s.ts_ns < w.end_ns
where s.ts_ns >= ? and s.ts_ns < ? and (
    s.node not in (select node from narrowed)
    or exists (select 1 from devices d where d.node = s.node and {is_it})
)
order by s.node, s.device, s.ts_ns
"""
_NARROWED = "select distinct node from devices"
# GPUs go by UUID here and by index there: where none of the job's names is one of the samples', nothing is narrowed.
_NARROWED_BY_SAMPLES = """
select distinct d.node from devices d join "{name}" s on s.node = d.node and {is_it}
"""
_OF_RUNS = """
select *, null::bigint as shared_with from "{name}" where list_contains(?, run_id) order by run_id, rank, ts_ns
"""


@dataclass(frozen=True)
class Device:
    """A device of a node that is the job's alone; `start_ticks` tell a process from a later one of its pid."""

    node: str
    name: str
    start_ticks: int | None = None


@dataclass(frozen=True)
class _Occupied:
    """Nodes, times and devices that somebody occupied."""

    intervals: list[NodeInterval] = field(default_factory=list)
    processes: list[Device] = field(default_factory=list)
    gpus: list[Device] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)

    def devices(self, metric_set: str) -> list[Device]:
        """Return the devices that the rows of this set are narrowed to; empty when to none."""
        return {"process": self.processes, "gpu": self.gpus}.get(metric_set, [])


def rows_of_job(store: Store, metric_set: str, job_id: str, *, system: str | None = None) -> pd.DataFrame:
    """The rows of a set that are the job's, each once, in base units, with `shared_with`.

    Raises: NotFoundError for an unknown job or set, InvalidInputError when several systems have a job of this id.
    """
    with store.catalog.read() as session:
        occupied = _of_job(session, store.jobs, job_id, system)
        here = _stretches(session, store.jobs, occupied.intervals, job_id)
    return _rows(store, metric_set, occupied, here)


def rows_of_run(store: Store, metric_set: str, run_id: str) -> pd.DataFrame:
    """The rows of a set that are the run's, each once, in base units, with `shared_with`.

    Raises: NotFoundError for an unknown run or set.
    """
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
        occupied = _of_run(session, run)
        here = _stretches(session, store.jobs, occupied.intervals, run.job_id)
    return _rows(store, metric_set, occupied, here)


def _rows(store: Store, metric_set: str, occupied: _Occupied, here: Sequence[Stretch]) -> pd.DataFrame:
    if metric_set not in store.lake.sets():
        raise NotFoundError(f"metric set {metric_set!r:.80} holds no rows: expected one of {store.lake.sets()}")
    columns = store.lake.columns(metric_set)
    span = (
        min((stretch.begin_ns for stretch in here), default=0),
        max((stretch.end_ns for stretch in here), default=0),
    )
    with store.lake.connect({metric_set}, within=ALWAYS if "run_id" in columns else span) as connection:
        if "run_id" in columns:
            frame: pd.DataFrame = connection.execute(_OF_RUNS.format(name=metric_set), [occupied.run_ids]).df()
            return frame
        if "node" not in columns or "device" not in columns:
            raise InvalidInputError(f"metric set {metric_set}: its rows name no node and device to join by")
        devices = occupied.devices(metric_set)
        connection.register("stretches", _frame(Stretch, here))
        connection.register("devices", _frame(Device, devices).astype({"start_ticks": "Int64"}))
        joined: pd.DataFrame = connection.execute(_sql(metric_set, columns), list(span)).df()
    return joined


def _sql(name: str, columns: Iterable[str]) -> str:
    is_it = _is_it(name, columns)
    nodes = _NARROWED_BY_SAMPLES.format(name=name, is_it=is_it) if name == "gpu" else _NARROWED
    return _ROWS.format(name=name, is_it=is_it, narrowed=nodes)


def _is_it(metric_set: str, columns: Iterable[str]) -> str:
    """The condition by which a row `s` is of device `d`."""
    if metric_set == "process":
        return "s.device = d.name and (d.start_ticks is null or s.start_ticks = d.start_ticks)"
    names = ["device", *(name for name in ("uuid", "index") if name in columns)]
    return "(" + " or ".join(f'coalesce(s."{name}"::varchar = d.name, false)' for name in names) + ")"


def _frame(kind: type, records: Sequence[object]) -> pd.DataFrame:
    names = list(kind.__dataclass_fields__)  # type: ignore[attr-defined]
    texts = {name: "int64" for name in names if name.endswith("_ns") or name == "shared_with"}
    types = {"node": "str", "name": "str", **texts}
    frame = pd.DataFrame([[getattr(record, name) for name in names] for record in records], columns=names)
    return frame.astype({name: types[name] for name in names if name in types})


def _of_job(session: Session, accounts: Jobs, job_id: str, system: str | None) -> _Occupied:
    allocations = [
        allocation
        for allocation in session.places.allocations(job_id)
        if not system or allocation.system in (system, "")
    ]
    systems = {allocation.system for allocation in allocations} - {""}
    jobs = _of_systems(accounts.named(job_id), {system} if system else systems)
    if len(systems) > 1 or len(jobs) > 1:
        named = ", ".join(sorted(systems | {job.system for job in jobs}))
        raise InvalidInputError(f"job {job_id!r} is of several systems, {named}: name one")
    if not allocations and not jobs:
        raise NotFoundError(f"job {job_id!r} is not in the catalog")
    job = jobs[0] if jobs else None
    placements = session.places.placements_of_job(job_id, system=next(iter(systems), None))
    runs = session.runs.find(RunFilter(job_id=job_id), limit=MAX_RUNS)
    of_runs = [_of_run(session, run) for run in runs]
    return _Occupied(
        intervals=allocated(allocations, job) if allocations else accounted_intervals(job),
        processes=[*map(_process, placements), *(process for run in of_runs for process in run.processes)],
        gpus=[Device(allocation.sampled_as, name) for allocation in allocations for name in allocation.gpus]
        or _visible_gpus(placements),
        run_ids=[run.run_id for run in runs],
    )


def _of_systems(jobs: Sequence[Job], systems: set[str]) -> Sequence[Job]:
    """The scheduler's accounts of a job: of these systems where there are any, else whatever there is of this id."""
    return [job for job in jobs if job.system in systems] or jobs


def allocated(allocations: Sequence[Allocation], job: Job | None) -> list[NodeInterval]:
    """The job's intervals. One without an end, as after a crash, ends with the next start or as the scheduler says."""
    intervals = []
    for allocation in allocations:
        later = [
            other.started_ns
            for other in allocations
            if other.restart_count > allocation.restart_count and other.started_ns is not None
        ]
        accounted_end = job.ended_ns if job and job.ended_ns is not None else FOREVER
        end_ns = allocation.ended_ns if allocation.ended_ns is not None else min(later, default=accounted_end)
        begin_ns = allocation.started_ns if allocation.started_ns is not None or job is None else job.started_ns
        if begin_ns is not None:
            intervals.append(NodeInterval(allocation.sampled_as, begin_ns, end_ns))
    return intervals


def accounted_intervals(job: Job | None) -> list[NodeInterval]:
    """The job's intervals by its scheduler's accounts, which name nodes in their own way."""
    if job is None or job.started_ns is None:
        return []
    return [NodeInterval(node, job.started_ns, FOREVER if job.ended_ns is None else job.ended_ns) for node in job.nodes]


def run_intervals(session: Session, run: Run) -> list[NodeInterval]:
    """The times of a run on its nodes, by the names by which these are sampled as far as they are known."""
    return _of_run(session, run).intervals


def _of_run(session: Session, run: Run) -> _Occupied:
    placements = session.places.placements_of_run(run.run_id)
    placed = {(placement.node, placement.pid) for placement in placements}
    ranks = [rank for rank in session.ranks.of(run.run_id) if (rank.node, rank.pid) not in placed]
    starts = [placement.started_ns for placement in placements if placement.started_ns is not None]
    starts += [rank.started_ns for rank in ranks]
    begin_ns = run.started_ns if run.started_ns is not None else min(starts, default=None)
    aliases = {placement.node: placement.sampled_as for placement in placements}
    nodes = {aliases.get(node, node) for node in (*run.nodes, *aliases, *(rank.node for rank in ranks))}
    return _Occupied(
        intervals=[]
        if begin_ns is None
        else [NodeInterval(node, begin_ns, _end_of(run, placements)) for node in sorted(nodes)],
        processes=[*map(_process, placements), *(Device(aliases.get(r.node, r.node), str(r.pid)) for r in ranks)],
        gpus=_visible_gpus(placements),
        run_ids=[run.run_id],
    )


def _end_of(run: Run, placements: Sequence[Placement]) -> int:
    """Return when the run ended; a lost one ended with its last process."""
    if run.ended_ns is not None:
        return run.ended_ns
    ends = [FOREVER if placement.ended_ns is None else placement.ended_ns for placement in placements]
    return max(ends, default=FOREVER)


def _visible_gpus(placements: Iterable[Placement]) -> list[Device]:
    """GPUs by UUID: an index counts from 0 in every job whose devices are confined, and names no GPU of the node."""
    return [
        Device(placement.sampled_as, name) for placement in placements for name in placement.gpus if not name.isdigit()
    ]


def _process(placement: Placement) -> Device:
    return Device(placement.sampled_as, str(placement.pid), placement.start_ticks)


def _stretches(
    session: Session, accounts: Jobs, intervals: Sequence[NodeInterval], job_id: str | None
) -> list[Stretch]:
    if not intervals:
        return []
    nodes = {interval.node for interval in intervals}
    span = min(interval.begin_ns for interval in intervals), max(interval.end_ns for interval in intervals)
    others = [allocation for allocation in session.places.allocations_on(nodes, *span) if allocation.job_id != job_id]
    jobs_by_id = accounts.all_named({allocation.job_id for allocation in others if allocation.ended_ns is None})
    return stretches(
        intervals,
        [
            (f"{allocation.system} {allocation.job_id}", interval)
            for allocation in others
            for interval in _intervals(allocation, jobs_by_id)
        ],
    )


def _intervals(other: Allocation, jobs_by_id: Mapping[str, Sequence[Job]]) -> list[NodeInterval]:
    jobs = _of_systems(jobs_by_id.get(other.job_id, []), {other.system})
    return allocated([other], jobs[0] if len(jobs) == 1 else None)
