"""The arrivals of ranks at collectives, on one clock, and so the rank that came last to each.

Ranks of a synchronous collective see its end at the same moment, but for the wire's latency: what their clocks say of
those ends tells how far the clocks stand apart. The median over a run's collectives is taken, as one end may be seen
late. Source: the same idea as in Becker, Rabenseifner, Wolf, "Implications of non-constant clock drifts for the
timestamps of concurrent events", CLUSTER 2008; the controlled logical clock is not needed for culprits.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
from duckdb import DuckDBPyConnection

from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.run import Rank, Run
from crosswind.data.schema.steps import COLLECTIVE
from crosswind.data.store.store import Store

SYNCHRONOUS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")  # nobody leaves before all came
MOST_STEPS = 2000  # that an estimate looks at, spread over the run

_ORDERED = """
with numbered as (
    select rank, step, sequence, "group", operation, ts_ns, duration_seconds,
        row_number() over (partition by rank, step, "group" order by sequence) as turn
    from collective where run_id = $run_id
)
"""
_APART = """
, sampled as (
    select *, ts_ns + cast(round(duration_seconds * 1e9) as bigint) as end_ns from numbered
    where duration_seconds is not null and operation in (select unnest($operations))
        and step % (select greatest(1, max(step) // $most) from numbered) = 0
), referred as (
    select *, min(rank) over (partition by step, "group", turn, operation) as reference from sampled
)
select reference.rank as reference, other.rank as rank, median(other.end_ns - reference.end_ns) as apart_ns,
    count(*) as collectives
from referred as other join referred as reference using (step, "group", turn, operation)
where reference.rank = other.reference and other.rank <> reference.rank
group by all order by collectives desc, reference, rank
"""
_LAST = """
, placed as (
    select numbered.*, ts_ns - coalesce(offsets.offset_ns, 0) as at_ns
    from numbered left join offsets using (rank)
)
select step, "group", turn - 1 as turn, operation, count(*) as ranks, arg_max(rank, at_ns) as last_rank,
    (max(at_ns) - min(at_ns)) / 1e9 as spread_seconds,
    (max(at_ns) - coalesce(list_sort(list(at_ns), 'desc')[2], max(at_ns))) / 1e9 as late_seconds
from placed group by step, "group", turn, operation having count(*) > 1 order by step, "group", turn
"""


def last_to_arrive(store: Store, run_id: str) -> pd.DataFrame:
    """Return the rank that came last to every collective of a run that two ranks or more came to, by time.

    Columns: step group turn (of the group within the step, from 0) operation ranks last_rank spread_seconds (first to
    last) late_seconds (by how much the last one was later than the one before it). Raises: NotFoundError.
    """
    run, ranks = _run_of(store, run_id)
    offsets = _offsets(store, run, ranks)
    frame = pd.DataFrame({"rank": list(offsets), "offset_ns": list(offsets.values())}, dtype="int64")
    with _collectives_of(store, run) as connection:
        connection.register("offsets", frame)
        arrivals: pd.DataFrame = connection.execute(_ORDERED + _LAST, {"run_id": run_id}).df()
    return arrivals


def clock_offsets(store: Store, run_id: str) -> Mapping[int, int]:
    """By how many nanoseconds each rank's clock is ahead of that of rank 0, as far as collectives tell.

    What is estimated of a run that has ended is kept with its ranks. Raises: NotFoundError.
    """
    return _offsets(store, *_run_of(store, run_id))


def _run_of(store: Store, run_id: str) -> tuple[Run, list[Rank]]:
    with store.catalog.read() as session:
        return session.runs.get(run_id), session.ranks.of(run_id)


def _offsets(store: Store, run: Run, ranks: Sequence[Rank]) -> Mapping[int, int]:
    stored = {rank.rank: rank.clock_offset_ns for rank in ranks if rank.clock_offset_ns is not None}
    if run.ended_ns is not None and ranks and len(stored) == len(ranks):
        return stored
    offsets = _estimated(store, run)
    if run.ended_ns is not None and offsets:
        with store.catalog.write() as session:
            for rank in ranks:
                if rank.rank in offsets:
                    session.ranks.merge(replace(rank, clock_offset_ns=offsets[rank.rank]))
    return offsets


def _collectives_of(store: Store, run: Run) -> DuckDBPyConnection:
    return store.lake.connect({COLLECTIVE.name}, within=time_of([run]))


def _estimated(store: Store, run: Run) -> dict[int, int]:
    wanted = {"run_id": run.run_id, "operations": list(SYNCHRONOUS), "most": MOST_STEPS}
    with _collectives_of(store, run) as connection:
        apart = connection.execute(_ORDERED + _APART, wanted).df()
    links: dict[int, list[tuple[int, int]]] = {}
    for row in apart.itertuples(index=False):
        links.setdefault(int(row.reference), []).append((int(row.rank), round(row.apart_ns)))
        links.setdefault(int(row.rank), []).append((int(row.reference), -round(row.apart_ns)))
    return _from_first(links)


def _from_first(links: Mapping[int, list[tuple[int, int]]]) -> dict[int, int]:
    """Offsets to the lowest rank, over ranks that share a group with both where two share none."""
    if not links:
        return {}
    first = min(links)
    offsets, waiting = {first: 0}, deque([first])
    while waiting:
        here = waiting.popleft()
        for there, apart in links[here]:
            if there not in offsets:
                offsets[there] = offsets[here] + apart
                waiting.append(there)
    return offsets


def latecomers(store: Store, run_id: str) -> pd.DataFrame:
    """Return how often each rank was last at the collective that a step's ranks came to furthest apart, and waited for.

    Columns: rank steps (of which it was last) share (of all such steps) late_seconds (median over those, behind the one
    before it); the rank that was last most often first. Raises: NotFoundError.
    """
    everything = last_to_arrive(store, run_id)
    awaited = everything[everything["operation"].isin(SYNCHRONOUS)]
    widest = awaited.loc[awaited.groupby("step")["spread_seconds"].idxmax()]
    by_rank = widest.groupby("last_rank").agg(steps=("step", "size"), late_seconds=("late_seconds", "median"))
    ranking = by_rank.rename_axis("rank").reset_index().sort_values(["steps", "rank"], ascending=[False, True])
    ranking["share"] = ranking["steps"] / max(1, len(widest))
    return ranking[["rank", "steps", "share", "late_seconds"]].reset_index(drop=True)
