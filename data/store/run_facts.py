"""Facts of runs, completed by the accounts of their jobs and by the samples of their nodes."""

from collections.abc import Mapping, Sequence

from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store

JOBS_MAX = 1000  # accounts that are looked up, of the newest runs
SAMPLED = ("accelerator", "accelerators_per_node", "driver", "accelerator_memory_bytes")
COLUMNS = ("name", "driver_version", "memory_total_bytes")
SETS = {"gpu": (*COLUMNS, "parent"), "amd_gpu": COLUMNS}  # a part of an accelerator (MIG) has a parent
_SAMPLED = """
select node, arg_max(name, ts_ns) as accelerator, count(distinct device) as accelerators_per_node,
    arg_max(driver_version, ts_ns) as driver, max(memory_total_bytes) as accelerator_memory_bytes
from {name} where ts_ns >= ? and ts_ns < ? and name is not null {whole} group by node
"""


def facts_of_runs(
    store: Store, runs: Sequence[Run], *, sampled_in: Run | None = None, jobs_max: int = JOBS_MAX
) -> list[Facts]:
    """Return the facts of each run: those stated with it, then its job's, then those sampled on its nodes.

    The samples are those taken during `sampled_in`, else during the newest of the runs that states no accelerator; they
    hold for others on the same nodes. The accounts of the newest `jobs_max` runs are looked up.
    """
    wanting = wanting_facts(runs)
    if not wanting:
        return [run.facts for run in runs]
    jobs, lacks = _of_jobs(store, wanting[-jobs_max:]), {run.run_id for run in wanting}
    try:
        nodes = _sampled(store, wanting if sampled_in is None else [sampled_in])
    except MalformedError:  # a damaged file of samples, which the energy of the answer complains about
        nodes = {}
    return [
        run.facts.over(jobs.get((run.system, run.job_id or ""), Facts())).over(_on(nodes, run))
        if run.run_id in lacks
        else run.facts
        for run in runs
    ]


def wanting_facts(runs: Sequence[Run]) -> list[Run]:
    """Return the runs that state no accelerator, and not that there is none."""
    return [run for run in runs if run.facts.accelerator is None and run.facts.accelerators_per_node != 0]


def _of_jobs(store: Store, runs: Sequence[Run]) -> dict[tuple[str, str], Facts]:
    """Facts by system and job."""
    job_ids = {run.job_id for run in runs if run.job_id}
    named = store.jobs.all_named(job_ids) if job_ids else {}
    return {(job.system, job.job_id): job.facts for jobs in named.values() for job in jobs}


def _sampled(store: Store, runs: Sequence[Run]) -> dict[str, Facts]:
    """Facts by node, by samples of its accelerators during the newest run that names its nodes."""
    newest = max(
        (run for run in runs if run.nodes and run.started_ns), key=lambda run: run.started_ns or 0, default=None
    )
    if newest is None or newest.started_ns is None:
        return {}
    within, by_node = time_of([newest]), dict[str, Facts]()
    for name in SETS.keys() & set(store.lake.sets()):
        if not set(SETS[name]).issubset(store.lake.columns(name)):  # written by another tool
            continue
        whole, end_ns = "and parent is null" if name == "gpu" else "", newest.ended_ns or newest.started_ns
        sql = _SAMPLED.format(name=name, whole=whole)
        rows = store.lake.frame(sql, [newest.started_ns, end_ns + 1], within=within)
        by_node |= {
            str(row["node"]): Facts.of_valid({name: row[name] for name in SAMPLED}) for _, row in rows.iterrows()
        }
    return by_node


def _on(nodes: Mapping[str, Facts], run: Run) -> Facts:
    """The facts that all nodes of a run have in common; none where one was not sampled."""
    own = [nodes.get(node, Facts()) for node in run.nodes]
    return own[0] if own and all(facts == own[0] for facts in own) else Facts()
