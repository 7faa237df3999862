"""The traces of stored runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.answers.traces import TracedRun
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.run import Run
from crosswind.data.schema.traced import TRACE_EVENT, TRACED_RANK
from crosswind.data.store.store import Store

if TYPE_CHECKING:  # heavy
    import pyarrow as pa

    from crosswind.data.traces.trace import RankTrace

EVERY_RUN = 100_000
_OF_RUNS = """
select run_id, count(distinct rank) as ranks, sum(events)::bigint as events, min(first_ns) as first_ns,
    max(last_ns) as last_ns
from traced_rank group by run_id
"""


def traces_of_run(store: Store, run_id: str) -> "list[RankTrace]":
    """Return the traces of a run, by rank. Raises: NotFoundError for a run that is not stored, or without traces."""
    return list(stream_of_run(store, run_id))


def stream_of_run(store: Store, run_id: str, *, every_capture: bool = False) -> "Iterator[RankTrace]":
    """Yield the same, each of which may be freed once the next one is asked for.

    Of a run whose ranks were traced several times, those of one capture: between two of them nothing is known. With
    `every_capture` those of a rank are joined. Raises: as `traces_of_run`.
    """
    from crosswind.data.traces.captures import one_capture  # noqa: PLC0415 - heavy
    from crosswind.data.traces.rows import facts_by_rank, trace_in  # noqa: PLC0415

    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    stored = facts_by_rank(_rows(store, TRACED_RANK.name, run))
    by_rank, notes = (stored, ()) if every_capture else one_capture(stored)
    for rank, facts in by_rank.items():
        edges = min(one["first_ns"] for one in facts), max(one["last_ns"] for one in facts)
        trace = trace_in(rank, facts, _rows(store, TRACE_EVENT.name, run, (rank, *edges)))
        yield replace(trace, notes=(*trace.notes, *notes))


def _rows(store: Store, name: str, run: Run, of: tuple[int, int, int] | None = None) -> "pa.Table":
    """Return a run's rows of a set as stored; of one rank, those that begin from a time to another."""
    columns = list(store.lake.columns(name)) if name in store.lake.sets() else []
    within = time_of([run])
    where = "run_id = ?" + (" and rank = ? and begin_ns between ? and ?" if of else "")
    if columns:
        rows = store.lake.counters(name, columns, where=where, parameters=[run.run_id, *(of or ())], within=within)
        if len(rows):
            return rows
    raise NotFoundError(f"run {run.run_id} has no traces: crosswind ingest FILE... --run {run.run_id} stores some")


def traced_among(store: Store, runs: Sequence[Run]) -> dict[str, TracedRun]:
    """Return those of these runs that have traces, by id."""
    if not runs or TRACED_RANK.name not in store.lake.sets():
        return {}
    sql = f"select * from ({_OF_RUNS}) where run_id in (select unnest($1))"  # noqa: S608 - our own text
    rows = store.lake.table(sql, [[run.run_id for run in runs]], within=time_of(runs)).to_pylist()
    return {row["run_id"]: _traced(row) for row in rows}


def traced_runs(store: Store) -> tuple[TracedRun, ...]:
    """Return the runs that have traces and may be seen, the newest traces first."""
    if TRACED_RANK.name not in store.lake.sets():
        return ()
    rows = store.lake.table(_OF_RUNS).to_pylist()
    with store.catalog.read() as session:
        seen = {run.run_id for run in session.runs.some([row["run_id"] for row in rows])}
    answers = (_traced(row) for row in rows if row["run_id"] in seen)
    return tuple(sorted(answers, key=lambda one: (one.last_ns, one.run_id), reverse=True))


def _traced(row: Mapping[str, Any]) -> TracedRun:
    return TracedRun(row["run_id"], row["ranks"], row["events"], row["first_ns"], row["last_ns"])
