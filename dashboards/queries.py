"""Queries of the pages to the store, beyond the features of runs."""

from dataclasses import dataclass

import pandas as pd

from crosswind.client.local import Local
from crosswind.data.catalog.catalog import Session
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.parts import ALWAYS
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.run import Run, cohort_key
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store

MOST_PEERS = 200  # newest runs of the workload, among which a cohort is looked for
BAND_PEERS_LEAST, BAND_ROWS = 3, 2_000_000  # whose steps make a band, and their rows at most
KEEP_SECONDS = 60.0  # of what was recorded of runs that ended a while ago: batches hardly ever add to them
ENDED_AGO_NS = 3600 * 10**9
ABOUT_THE_AGENT = ("collector",)
NO_BAND = pd.DataFrame(columns=["step", "p10", "p50", "p90"], dtype=float)

_BAND = """
with per_step as (
    select run_id, step, max(duration_seconds) * 1e-9 as seconds
    from {files} where step >= $warm_up and run_id in (select unnest($runs)) group by run_id, step
)
select step, quantile_cont(seconds, 0.1) as p10, median(seconds) as p50, quantile_cont(seconds, 0.9) as p90,
    (select count(distinct run_id) from per_step) as runs
from per_step group by step order by step
"""
_SAMPLES = """
select count(*) as samples, count(distinct node) as nodes, count(distinct ts_ns) as instants
from "{source}" where node in (select unnest(?)) and ts_ns between ? and ?
"""


@dataclass(frozen=True)
class NodeSource:
    """The extent of one metric set's samples of a run's nodes while it ran."""

    source: str
    samples: int
    nodes: int
    instants: int


@dataclass(frozen=True)
class CohortBand:
    """Step times of a cohort's other runs: columns step, p10, p50, p90 in seconds over their slowest ranks.

    `keep_seconds`: how long the band is kept, whatever arrives.
    """

    steps: pd.DataFrame
    runs: int
    keep_seconds: float = KEEP_SECONDS


def judge_newest(client: Local, wanted: RunFilter, *, limit: int) -> None:
    """Have the newest runs judged that never were: a server does that in the background, other stores here."""
    with client.store.catalog.read() as session:
        newest = [run.run_id for run in session.runs.outlines(wanted, limit=limit)]
        judged = session.verdicts.get(newest)
        lacking = session.runs.some([run_id for run_id in newest if run_id not in judged])
    if lacking:
        client.explain_runs(client.store, lacking)


def peers_of(session: Session, run: Run) -> list[Run]:
    """The other runs of the run's cohort, among the newest of its workload."""
    wanted = RunFilter(workload=run.workload, system=run.system)
    cohort = cohort_key(run)
    runs = session.runs.find(wanted, limit=MOST_PEERS)
    return [peer for peer in runs if peer.run_id != run.run_id and cohort_key(peer) == cohort]


def cohort_band(store: Store, run_id: str) -> CohortBand:
    """Return the band of a run's cohort, after warm-up. Of many ranks and long runs fewer are read, the newest."""
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
        peers = [peer for peer in peers_of(session, run) if peer.started_ns is not None]
    if not peers:
        return CohortBand(NO_BAND, 0)
    return _band(store, peers[: max(BAND_PEERS_LEAST, BAND_ROWS // _rows(store, peers[:1]))])


def _rows(store: Store, peers: list[Run]) -> int:
    """Return the number of rows that the steps of these runs have, 1 at least."""
    files, parameters = _steps_of(store, peers), {"runs": [peer.run_id for peer in peers]}
    sql = f"select count(*) from {files} where run_id in (select unnest($runs))"  # noqa: S608 - the files of the lake
    [(count,)] = store.lake.answer(lambda connection: connection.execute(sql, parameters).fetchall())
    return max(1, int(count))


def _band(store: Store, peers: list[Run]) -> CohortBand:
    sql, parameters = _BAND.format(files=_steps_of(store, peers)), {"runs": [peer.run_id for peer in peers]}
    given = {**parameters, "warm_up": WARM_UP_STEPS}
    band: pd.DataFrame = store.lake.answer(lambda connection: connection.execute(sql, given).df())
    return CohortBand(band, 0 if band.empty else int(band["runs"].iloc[0]))


def _steps_of(store: Store, runs: list[Run]) -> str:
    """Return the files of these runs' steps, as SQL reads them."""
    files = store.lake.parts("step", time_of(runs), [run.run_id for run in runs])
    return store.lake.source("step", files) or store.lake.files("step")


def node_samples(store: Store, run: Run) -> tuple[NodeSource, ...]:
    """Return the samples of the run's nodes while it ran; empty if nodes or start are unknown."""
    if not run.nodes or run.started_ns is None:
        return ()
    lake = store.lake
    names = [name for name in lake.sets() if name not in ABOUT_THE_AGENT and "node" in lake.columns(name)]
    begin, end = run.started_ns, run.ended_ns if run.ended_ns is not None else ALWAYS[1]
    connection = lake.connect(names, within=(begin, end))
    try:
        rows = [
            connection.execute(_SAMPLES.format(source=name), [list(run.nodes), begin, end]).fetchone() for name in names
        ]
    finally:
        connection.close()
    return tuple(NodeSource(name, *row) for name, row in zip(names, rows, strict=True) if row is not None)
