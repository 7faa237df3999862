"""Ranks' places, devices, nodes and switches that are slower than their peers, over the runs of a store."""

import time
from collections.abc import Mapping, Sequence

import numpy as np

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.parts import DAY_NS
from crosswind.data.schema.answers.stragglers import ComparisonBasis, PeerKind, PeerRanking, RankedPeer
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run
from crosswind.data.store.features import EVERY_RUN
from crosswind.data.store.store import Store
from crosswind.models.stragglers.by_ranks import ranked_by_ranks
from crosswind.models.stragglers.by_times import ranked_by_times
from crosswind.models.stragglers.observed import boots_at, local_times
from crosswind.models.stragglers.ranking import FEWEST_RUNS

RUNS = 20_000  # the newest, unless more are asked for


def fleet_ranking(
    store: Store,
    system: str | None = None,
    workload: str | None = None,
    *,
    runs: int = RUNS,
    switches: Mapping[str, str] | None = None,
) -> PeerRanking:
    """Rank the newest `runs` of a system and a workload, or of all.

    switches: the switch of each node, None: the leaf switches that the store knows.

    Raises: InvalidInputError for fewer than one run or more than EVERY_RUN; MalformedError.
    """
    if not 1 <= runs <= EVERY_RUN:
        raise InvalidInputError(f"runs {runs}: expected 1 to {EVERY_RUN}")
    return _ranking(store, RunFilter(system=system, workload=workload), runs, switches)


def recent_ranking(store: Store, system: str | None, workload: str | None, days: int) -> PeerRanking:
    """Rank the same of so many days up to now. Raises: MalformedError."""
    since_ns = time.time_ns() - days * DAY_NS
    return _ranking(store, RunFilter(system=system, workload=workload, since_ns=since_ns), RUNS, None)


def _ranking(store: Store, wanted: RunFilter, runs: int, switches: Mapping[str, str] | None) -> PeerRanking:
    with store.catalog.read() as session:
        outlines = session.runs.outlines(wanted, limit=runs)
    table = local_times(store, outlines)
    switches = store.switches if switches is None else switches
    by_ranks, noise, compared = (
        ranked_by_ranks(table, boots_at(store, table), switches) if len(table) else ([], None, 0)
    )
    watched = set(table["run_id"].unique())
    others = {run.run_id: run for run in outlines if run.run_id not in watched}
    by_times, timed = ranked_by_times(_placed(store, others, wanted, runs) if others else [])
    ranked_nodes = {(node.system, node.name) for node in by_ranks if node.kind is PeerKind.NODE}
    by_times = [node for node in by_times if (node.system, node.name) not in ranked_nodes]
    ranked = sorted([*by_ranks, *by_times], key=lambda entry: (-entry.chance_slower, -entry.low_ratio, entry.name))
    noise_ratio = None if noise is None else float(np.expm1(noise))
    return PeerRanking(
        *(len(outlines), compared, timed, noise_ratio, len(ranked)),
        tuple(ranked),
        _warnings(len(outlines), compared, ranked),
    )


def _placed(
    store: Store, among: Mapping[str, Run], wanted: RunFilter, limit: int
) -> list[tuple[Run, str, Sequence[str]]]:
    """Return those of these runs that completed, each with its cohort and its nodes."""
    with store.catalog.read() as session:
        placed = session.runs.placed(wanted, limit=limit)
    return [(among[run_id], cohort, nodes) for run_id, cohort, nodes in placed if run_id in among]


def _warnings(runs: int, compared: int, ranked: Sequence[RankedPeer]) -> tuple[str, ...]:
    """Return warnings about missing records, with the way to make them."""
    warnings = []
    if not runs:
        warnings.append("no run is stored: crosswind run -- CMD records one")
    elif not compared:
        warnings.append(
            "no run has ranks on several nodes that recorded how long they waited, so no rank can be compared with "
            "its peers: watch the model (run.watch) in runs of two nodes or more"
        )
    if runs and not ranked:
        warnings.append("no node was in two runs that can be compared: nothing is known of any")
    few = sum(entry.runs < FEWEST_RUNS for entry in ranked if entry.kind is PeerKind.NODE)
    if few:
        warnings.append(f"{few} nodes were compared in fewer than {FEWEST_RUNS} runs since their last boot or change")
    if any(entry.basis is ComparisonBasis.RUN_TIMES for entry in ranked):
        warnings.append(
            "nodes judged by run times share the blame with the nodes that they ran with; records of ranks help"
        )
    return tuple(warnings)
