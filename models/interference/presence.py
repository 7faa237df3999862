"""Presences on nodes over time: runs and jobs with their owners, under pseudonyms only."""

import numpy as np
import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.lake import Lake
from crosswind.data.schema.answers.effects import NeighbourKind
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.hostlist import expand
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import all_runs
from crosswind.data.store.job_accounts import settled
from crosswind.data.store.jobs import JOB
from crosswind.data.store.node_intervals import FOREVER
from crosswind.data.store.store import Store

_JOBS = ("user", "nodes", "started_ns", "ended_ns")
COLUMNS = {"node": "object", "begin_ns": "int64", "end_ns": "int64", "run_id": "object", "job_id": "object"}


def presences(store: Store, system: str, begin_ns: int, end_ns: int) -> pd.DataFrame:
    """One row for each stay of a run or job on a node of the system that overlaps [begin, end).

    Columns: node begin_ns end_ns run_id job_id (null where unknown) and user, workload, job: the candidates that it
    counts for, null for none. A job whose runs are known counts by them while they last, and by itself otherwise.
    Users have the pseudonyms of the lake; names of jobs, which their users choose, are not read.
    """
    jobs = _jobs(store.lake, system, begin_ns, end_ns)
    runs = [run for run in all_runs(store, RunFilter(system=system)) if _reaches(run, begin_ns, end_ns)]
    users = dict(zip(jobs["job_id"], jobs["user"], strict=True))
    recorded_jobs = set(users)
    of_runs: list[tuple[object, ...]] = [
        (node, run.started_ns, run.ended_ns or FOREVER, run.run_id, run.job_id, users.get(run.job_id), run.workload)
        for run in runs
        for node in dict.fromkeys(run.nodes)
    ]
    of_jobs: list[tuple[object, ...]] = [
        (node, started, ended, None, job_id, user, None)
        for job_id, user, nodes, started, ended in jobs.itertuples(index=False)
        for node in dict.fromkeys(_expanded(nodes, job_id))
    ]
    names = ("node", "begin_ns", "end_ns", "run_id", "job_id", NeighbourKind.USER.value, NeighbourKind.WORKLOAD.value)
    table = pd.DataFrame(of_runs + of_jobs, columns=list(names)).astype(COLUMNS | {"user": object, "workload": object})
    # A job that the scheduler recorded counts by its own stay, or its user would count twice while its runs last.
    has_record = table["run_id"].notna() & table["job_id"].isin(recorded_jobs)
    table[NeighbourKind.USER.value] = table[NeighbourKind.USER.value].where(~has_record, None)
    table[NeighbourKind.JOB.value] = table["job_id"].where(~has_record, None)
    return table


def _jobs(lake: Lake, system: str, begin_ns: int, end_ns: int) -> pd.DataFrame:
    if JOB.name not in lake.sets():
        return pd.DataFrame({name: [] for name in ("job_id", *_JOBS)})
    among = settled(JOB.name, ("job_id", *_JOBS), where="system = ?")
    columns = f"job_id, {', '.join(_JOBS)}"
    sql = (
        f"select {columns} from ({among}) "  # noqa: S608 - our own texts
        "where started_ns < ? and coalesce(ended_ns, ?) > ? and nodes is not null"
    )
    jobs = lake.frame(sql, [system, end_ns, FOREVER, begin_ns])
    ended = jobs["ended_ns"].astype("Int64").fillna(FOREVER).astype(np.int64)
    return jobs.assign(ended_ns=ended, user=jobs["user"].astype(object).where(jobs["user"].notna(), None))


def _reaches(run: Run, begin_ns: int, end_ns: int) -> bool:
    """Return whether a run overlaps the time; a lost run, whose end is unknown, does not count."""
    if run.ended_ns is None and run.state is not RunState.RUNNING:
        return False
    return run.started_ns is not None and run.started_ns < end_ns and (run.ended_ns or FOREVER) > begin_ns


def _expanded(nodes: str, job_id: str) -> tuple[str, ...]:
    """A job's nodes. Raises: MalformedError naming the job."""
    try:
        return tuple(expand(nodes))
    except MalformedError as error:
        raise MalformedError(f"job {job_id!r:.80}: {error}") from error
