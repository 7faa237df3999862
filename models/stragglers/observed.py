"""Reading of the ranks' times without waiting, of their places, and of their nodes' boots from the store."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.run import Run
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.models.conditions.places import swept_set
from crosswind.models.stragglers.effects import Codes

# Where no rank of a run ever waited, its collectives were not watched, and local time means nothing.
_LOCAL = """
with local as (
    select run_id, rank, avg(duration_seconds - comm_seconds) as local_seconds, sum(comm_seconds) as waited, count(*)
        as steps
    from step where step >= ? and run_id in (select unnest(?)) group by run_id, rank
)
select run_id, rank, local_seconds, steps from local
where local_seconds > 0 qualify sum(waited) over (partition by run_id) > 0 order by run_id, rank
"""
_BOOTS = """
select node, boot_id, min(ts_ns) as first_ns from {} where ts_ns between ? and ? and boot_id is not null
group by all order by node, first_ns
"""
LOOK_BACK_NS = 86_400_000_000_000  # before the first run, for its boot
COLUMNS = ("run_id", "rank", "system", "workload", "place", "node", "device", "started_ns", "ended_ns", "log_local")


def local_times(store: Store, runs: Sequence[Run]) -> pd.DataFrame:
    """One row for each rank of each run that recorded how long its ranks waited for each other.

    Columns: run_id rank system workload place node device started_ns ended_ns log_local. A rank's `place` is its number
    in runs of that workload and size; `device` is null unless the rank had exactly one GPU; `log_local` is the log of
    its mean seconds a step without waiting, warm-up left out. Ranks of unknown nodes are left out.
    Raises: MalformedError.
    """
    started = {run.run_id: run for run in runs if run.started_ns is not None}
    parameters = [WARM_UP_STEPS, list(started)]
    local = store.lake.frame(_LOCAL, parameters, within=time_of(started.values()))
    ranks = _ranks(store, local["run_id"].unique().tolist())
    joined = local.merge(ranks, on=["run_id", "rank"])
    of_run = pd.DataFrame([_facts(started[run_id]) for run_id in joined["run_id"].unique()], columns=list(_FACTS))
    whole = joined.merge(of_run, on="run_id")
    return whole.assign(place=_places(whole), log_local=np.log(whole["local_seconds"]))[list(COLUMNS)]


def boots_at(store: Store, table: pd.DataFrame) -> Codes:
    """Return the number of boots of each row's node by the end of the row's run, as sampled, (n_rows,).

    table: columns node, started_ns, ended_ns. No run outlives a boot of its node, so that its end identifies the boot.
    """
    swept = swept_set(store.lake.sets())
    counts = np.zeros(len(table), dtype=np.int64)
    if swept is None or table.empty:
        return counts
    span = (int(table["started_ns"].min()) - LOOK_BACK_NS, int(table["ended_ns"].max()))
    boots = store.lake.frame(_BOOTS.format(swept), span, within=span)
    ends = table["ended_ns"].to_numpy(np.int64)
    first_ns = {str(node): times.to_numpy(np.int64) for node, times in boots.groupby("node")["first_ns"]}
    for node, places in table.reset_index(drop=True).groupby("node").indices.items():
        later = first_ns.get(str(node), counts[:0])[1:]  # the first boot may be older than its first sample
        counts[places] = np.searchsorted(later, ends[places], side="right")
    return counts


_FACTS = ("run_id", "system", "workload", "size", "started_ns", "ended_ns")


def _facts(run: Run) -> tuple[object, ...]:
    size = f"{run.workload}, {run.world_size or '?'} ranks"
    return (run.run_id, run.system, run.workload, size, run.started_ns, run.ended_ns or run.started_ns)


def _places(table: pd.DataFrame) -> pd.Series:
    """`workload, size, rank number` of each row, formatted once for each place."""
    number = table.groupby(["size", "rank"]).ngroup()
    places = table.loc[~number.duplicated(), ["size", "rank"]].assign(number=number)
    return number.map((places["size"] + ", rank " + places["rank"].astype(str)).set_axis(places["number"]))


def _ranks(store: Store, run_ids: Sequence[str]) -> pd.DataFrame:
    with store.catalog.read() as session:
        columns = session.ranks.nodes_of(run_ids)
        devices = session.places.gpus_of_ranks(run_ids)
    ranks = pd.DataFrame(dict(zip(("run_id", "rank", "node"), columns, strict=True))).astype(
        {"run_id": "str", "rank": "int64", "node": "str"}
    )
    gpus = [_only(devices.get(key)) for key in zip(*columns[:2], strict=True)] if devices else None
    return ranks.assign(device=pd.Series(gpus, index=ranks.index, dtype=object))


def _only(gpus: Sequence[str] | None) -> str | None:
    return str(gpus[0]) if gpus is not None and len(gpus) == 1 else None
