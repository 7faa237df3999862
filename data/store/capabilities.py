"""Questions that the store can answer by what is in it, and what it lacks for the rest."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.schema.hostlist import expand
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import COLLECTIVE, STEP
from crosswind.data.store.job_accounts import settled
from crosswind.data.store.jobs import JOB
from crosswind.data.store.run_tags import ENERGY_TAG
from crosswind.data.store.store import Store

REPEATS = 5  # of a cohort, from which on its spread says something
LOOKED_AT = 2_000  # newest jobs and runs of which it is asked whether samples overlap them
NODES_LOOKED_AT = 500_000  # of them together; fewer jobs are looked at where they are larger
SPANS = pa.schema({"whose": pa.string(), "node": pa.list_(pa.string()), "begin_ns": pa.int64(), "end_ns": pa.int64()})
HOUR_NS = 3_600_000_000_000
POWER_SETS = ("power", "rapl", "pm_counters", "ipmi", "redfish")


@dataclass(frozen=True)
class Kept:
    """Counts of what is stored, by kind."""

    runs: int = 0
    workloads: int = 0
    cohorts: int = 0
    repeated_cohorts: int = 0  # with at least REPEATS ended runs
    jobs: int = 0
    job_names: int = 0
    repeated_jobs: int = 0  # groups of at least REPEATS completed jobs of one name, user and size
    timed_runs: int = 0  # with a step timeline
    told_runs: int = 0  # of those, with arrivals at collectives
    looked_at: int = 0  # jobs and runs whose nodes are known, the newest ones
    sampled: int = 0  # of those, with samples of a node of theirs from their time
    with_energy: int = 0  # jobs
    energy_runs: int = 0  # of the newest runs, those whose record states it
    power_sets: tuple[str, ...] = ()
    trials: int = 0
    studies: int = 0


@dataclass(frozen=True)
class Capability:
    """One kind of answer: whether the store can give it, and why."""

    name: str
    is_possible: bool
    because: str


def kept_in(store: Store) -> Kept:
    """Counts what there is. Raises: MalformedError for a damaged lake."""
    sets = store.lake.sets()
    with store.catalog.read() as session:
        cohorts = session.runs.cohorts()
        newest = session.runs.find(limit=LOOKED_AT)
        trials, studies = session.studies.counts()
    spans = _looked_at(itertools.chain(_spans_of_runs(newest), _spans_of_jobs(store)))
    return Kept(
        runs=sum(runs for _, runs, _ in cohorts),
        workloads=len({workload for workload, _, _ in cohorts}),
        cohorts=len(cohorts),
        repeated_cohorts=sum(ended >= REPEATS for _, _, ended in cohorts),
        **(_jobs(store) if JOB.name in sets else {}),
        timed_runs=_runs_in(store, STEP.name) if STEP.name in sets else 0,
        told_runs=_runs_in(store, COLLECTIVE.name) if COLLECTIVE.name in sets else 0,
        looked_at=len(spans),
        sampled=_sampled(store, spans, [name for name in sets if "node" in store.lake.columns(name)]),
        energy_runs=sum(ENERGY_TAG in run.tags for run in newest),
        power_sets=tuple(name for name in POWER_SETS if name in sets),
        trials=trials,
        studies=studies,
    )


def capabilities(kept: Kept) -> Iterator[Capability]:
    """Yield what can be asked now, in the order in which people ask."""
    repeated = kept.repeated_cohorts + kept.repeated_jobs
    yield Capability(
        "prediction",
        repeated > 0,
        f"{kept.repeated_cohorts} of {kept.cohorts} cohorts of runs have {REPEATS} repeats or more, and "
        f"{kept.repeated_jobs} groups of jobs of one name, user and size"
        if repeated
        else f"no cohort has {REPEATS} repeats yet",
    )
    yield Capability(
        "phases of steps",
        kept.timed_runs > 0,
        f"{kept.timed_runs} runs have a step timeline, "
        f"{kept.told_runs} of them with the last rank to arrive at collectives"
        if kept.timed_runs
        else "no run has a step timeline: crosswind run -- CMD, or the probe, records one",
    )
    yield Capability("counters", kept.sampled > 0, _of_counters(kept))
    has_energy = bool(kept.with_energy or kept.energy_runs or kept.power_sets)
    facts = [f"{kept.with_energy} jobs tell their energy"] if kept.with_energy else []
    looked_at = min(kept.runs, LOOKED_AT)
    facts += [f"{kept.energy_runs} of the newest {looked_at} runs state their energy"] if kept.energy_runs else []
    facts += [f"power was sampled ({', '.join(kept.power_sets)})"] if kept.power_sets else []
    yield Capability("energy", has_energy, "; ".join(facts) or "neither jobs nor samples record energy or power")
    yield Capability(
        "warm start of a search",
        kept.trials > 0,
        f"{kept.trials} trials of {kept.studies} studies" if kept.trials else "no trials are stored",
    )


def _of_counters(kept: Kept) -> str:
    if not kept.looked_at:
        return "no job or run states its nodes and times"
    if not kept.sampled:
        return "no node telemetry overlaps these jobs and runs: crosswind agent, or crosswind ingest of what there is"
    return f"{kept.sampled} of the newest {kept.looked_at} jobs and runs have samples of their nodes"


_JOBS = f"""
with newest as (
    {settled("job", ("user", "name", "node_count", "cpu_count", "state", "started_ns", "ended_ns", "energy_joules"))}
), alike as (
    select count(*) as jobs, count(*) filter (where state = 'COMPLETED' and ended_ns > started_ns) as ended,
        count(energy_joules) as with_energy, any_value(name) as name
    from newest group by system, "user", name, node_count, cpu_count
)
select coalesce(sum(jobs), 0)::bigint as jobs, count(distinct name) as job_names,
    count(*) filter (where ended >= ?) as repeated_jobs, coalesce(sum(with_energy), 0)::bigint as with_energy
from alike
"""  # noqa: S608 - our own texts


def _jobs(store: Store) -> dict[str, int]:
    frame = store.lake.frame(_JOBS, [REPEATS])
    return {str(name): int(value) for name, value in frame.iloc[0].items()}


def _runs_in(store: Store, name: str) -> int:
    frame = store.lake.frame(f'select count(distinct run_id) as runs from "{name}"')  # noqa: S608 - a set of ours
    return int(frame["runs"].iloc[0])


_Span = tuple[str, Sequence[str], int, int]  # whose, its nodes, begin and end in nanoseconds


def _spans_of_runs(runs: Sequence[Run]) -> Iterator[_Span]:
    for run in runs:
        if run.started_ns is not None and run.ended_ns is not None and run.nodes:
            yield f"run {run.run_id}", run.nodes, run.started_ns, run.ended_ns


def _spans_of_jobs(store: Store) -> Iterator[_Span]:
    for job in store.jobs.newest_spans(limit=LOOKED_AT):
        if nodes := expand(job.nodes):
            yield f"job {job.system} {job.job_id}", nodes, job.started_ns, job.ended_ns


def _looked_at(spans: Iterable[_Span]) -> pa.Table:
    """The first of these spans, as many as have NODES_LOOKED_AT nodes together; one at least."""
    nodes = 0
    batches: list[pa.RecordBatch] = []
    for span in spans:
        nodes += len(span[1])
        if nodes > NODES_LOOKED_AT and batches:
            break
        batches.append(
            pa.record_batch([pa.array([value], kind) for value, kind in zip(span, SPANS.types, strict=True)], SPANS)
        )
    return pa.Table.from_batches(batches, SPANS)


def _sampled(store: Store, spans: pa.Table, sets: Sequence[str]) -> int:
    """Return how many of those whose spans these are have a sample of a node within one."""
    if not len(spans) or not sets:
        return 0
    within = int(pc.min(spans["begin_ns"]).as_py()), int(pc.max(spans["end_ns"]).as_py())
    every = " union all ".join(
        f"select node, ts_ns from {store.lake.files(name, within)}"  # noqa: S608 - files of sets of ours
        for name in sets
        if store.lake.parts(name, within)
    )
    if not every:
        return 0

    def ask(connection: duckdb.DuckDBPyConnection) -> int:
        connection.register("spans", spans)
        connection.execute(
            f"create temp table here as select distinct node, ts_ns // {HOUR_NS} as hour, "  # noqa: S608
            f"min(ts_ns) as first_ns, max(ts_ns) as last_ns from ({every}) group by node, hour"
        )
        [(count,)] = connection.execute(
            "select count(distinct whose) from (select * replace (unnest(node) as node) from spans) s "
            "join here h on h.node = s.node and h.first_ns < s.end_ns and h.last_ns >= s.begin_ns"
        ).fetchall()
        return int(count)

    return store.lake.answer(ask)
