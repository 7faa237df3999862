"""Runs beside each other: their segments, with what they tell of one another."""

import logging
from collections.abc import Collection, Mapping, Sequence

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.store import Store
from crosswind.models.explain.alike import of_runs_alike
from crosswind.models.explain.condensed import condensed
from crosswind.models.explain.evidence import own_segments, ranks_of, spans_of
from crosswind.models.explain.kept import Kept
from crosswind.models.explain.low_clocks import of_low_clocks, put_low_clock
from crosswind.models.explain.segments import COLUMNS, Segments
from crosswind.models.explain.slow_nodes import of_slow_nodes, put_slow_nodes

log = logging.getLogger(__name__)


def read_segments(store: Store, runs: Sequence[Run]) -> dict[str, Segments]:
    """The segments of every run that recorded collectives, by run id.

    What runs have in common, software, placement, nodes and clocks, is told from these runs beside each other.
    """
    ranks = ranks_of(store, runs)
    segments = dict(own_segments(store, runs, ranks, spans_of(store, runs)))
    _tell(store, runs, ranks, cohort=segments, targets=[segments])
    return segments


def read_cohort(
    store: Store, runs: Sequence[Run], asked: Collection[str]
) -> tuple[dict[str, Segments], dict[str, Segments]]:
    """The same of those runs that are asked for, by run id; and condensed segments of all of them.

    What was condensed before and still holds is not read again.
    """
    ranks = ranks_of(store, runs)
    kept = Kept(store, runs, ranks)
    records = {run.run_id: kept.get(run) for run in runs}
    unread = [run for run in runs if run.run_id in asked or not records[run.run_id].is_known]
    unread_ids = {run.run_id for run in unread}
    spans = spans_of(store, unread)
    whole = dict(own_segments(store, unread, [rank for rank in ranks if rank.run_id in unread_ids], spans))
    peers = {run_id: record.segments for run_id, record in records.items() if record.segments is not None}
    for run in unread:
        peers.pop(run.run_id, None)
        if run.run_id in whole:
            peers[run.run_id] = condensed(whole[run.run_id])
        if not records[run.run_id].is_known:
            kept.put(run, spans[spans["run_id"] == run.run_id], peers.get(run.run_id))
    peers = {run.run_id: peers[run.run_id] for run in runs if run.run_id in peers}
    chosen = {run_id: segments for run_id, segments in whole.items() if run_id in asked}
    _tell(store, runs, ranks, cohort=peers, targets=[peers, chosen])
    return chosen, peers


def _tell(
    store: Store,
    runs: Sequence[Run],
    ranks: Sequence[Rank],
    *,
    cohort: Mapping[str, Segments],
    targets: Sequence[Mapping[str, Segments]],
) -> None:
    """Write down what the runs of a cohort tell of each other, in all of their segments among `targets`."""
    for run_id, column, seconds in of_runs_alike(runs, cohort, ranks, _switches(store)):
        for segments in _of(run_id, targets):
            segments.values[:, COLUMNS.index(column)] = seconds
    for run_id, lost in of_slow_nodes(runs, cohort, ranks):
        for segments in _of(run_id, targets):
            put_slow_nodes(segments, lost)
    for run_id, share in of_low_clocks(runs, cohort):
        for segments in _of(run_id, targets):
            put_low_clock(segments, share)


def _switches(store: Store) -> Mapping[str, str]:
    """Without a file that can be read, runs are told apart by their nodes alone."""
    try:
        return store.switches
    except MalformedError as error:
        log.warning("explained without switches: %s", error)
        return {}


def _of(run_id: str, targets: Sequence[Mapping[str, Segments]]) -> list[Segments]:
    return [segments[run_id] for segments in targets if run_id in segments]
