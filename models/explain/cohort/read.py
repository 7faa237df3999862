"""Segments of runs and their cohorts, read from a store."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence

import pandas as pd

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.columns import COMPARED_SAMPLES, OWN_COLUMNS, SAMPLED
from crosswind.models.explain.cohort.own_segments import OwnSegments, condensed, own_segments
from crosswind.models.explain.cohort.peer_evidence import peer_evidence
from crosswind.models.explain.cohort.segment_cache import SegmentCache
from crosswind.models.explain.cohort.segments import PeerEvidence, Segments, segments_of
from crosswind.models.explain.cohort.step_rows import ranks_of, spans_of, step_rows
from crosswind.models.explain.evidence.indicators import ComparedRun
from crosswind.models.explain.evidence.node_rates import sampled_during
from crosswind.models.explain.evidence.step_columns import OTHER_THREADS, PHASES
from crosswind.models.explain.evidence.thread_waits import thread_waits

log = logging.getLogger(__name__)


def read_segments(store: Store, runs: Sequence[Run]) -> dict[str, Segments]:
    """Return by run id the segments of every run that recorded collectives.

    Evidence that needs other runs comes from comparing these runs. Raises: MalformedError.
    """
    ranks = ranks_of(store, runs)
    own = dict(read_own_segments(store, runs, ranks, spans_of(store, runs)))
    return _with_peers(own, peer_evidence(_compared(store, runs, ranks, own)))


def read_cohort(
    store: Store, runs: Sequence[Run], wanted: Collection[str]
) -> tuple[dict[str, Segments], dict[str, Segments]]:
    """Return by run id the segments of those runs that are wanted, and condensed segments of all runs.

    Runs whose condensed segments still hold are not read again. Raises: MalformedError.
    """
    ranks = ranks_of(store, runs)
    cache = SegmentCache(store, runs, ranks)
    entries = {run.run_id: cache.get(run) for run in runs}
    unread = [run for run in runs if run.run_id in wanted or entries[run.run_id] is None]
    unread_ids = {run.run_id for run in unread}
    spans = spans_of(store, unread)
    whole = dict(read_own_segments(store, unread, [rank for rank in ranks if rank.run_id in unread_ids], spans))
    cohort = {}
    for run in runs:
        entry = entries[run.run_id]
        own = condensed(whole[run.run_id]) if run.run_id in whole else None if entry is None else entry.segments
        if entry is None:
            cache.put(run, spans[spans["run_id"] == run.run_id], own)
        if own is not None:
            cohort[run.run_id] = own
    evidence = peer_evidence(_compared(store, runs, ranks, cohort))
    chosen = {run_id: own for run_id, own in whole.items() if run_id in wanted}
    return _with_peers(chosen, evidence), _with_peers(cohort, evidence)


def read_own_segments(
    store: Store, runs: Sequence[Run], ranks: Sequence[Rank], spans: pd.DataFrame
) -> Iterator[tuple[str, OwnSegments]]:
    """Yield run id and own segments of every run that recorded collectives.

    ranks: all of these runs; spans: as `spans_of`. Raises: MalformedError.
    """
    waits = thread_waits(store.lake, ranks, spans)
    sampled = sampled_during(store.lake, runs, spans, SAMPLED, compared=COMPARED_SAMPLES)
    for run_id, rows in step_rows(store, runs, spans):
        values = sampled.get(run_id, {}) | {OTHER_THREADS: waits.get(run_id, float("nan"))}
        segments = own_segments(run_id, rows, values)
        if segments is not None:
            yield run_id, segments


def _compared(
    store: Store, runs: Sequence[Run], ranks: Sequence[Rank], segments: Mapping[str, OwnSegments]
) -> list[ComparedRun]:
    nodes: dict[str, dict[int, str]] = {}
    for rank in ranks:
        nodes.setdefault(rank.run_id, {})[rank.rank] = rank.node
    switches = _switches(store)
    compared = []
    for run in runs:
        if run.run_id in segments:
            own = segments[run.run_id]
            phases = {phase: float(own.values[:, OWN_COLUMNS.index(phase)].mean()) for phase in PHASES}
            compared.append(ComparedRun(run, nodes.get(run.run_id, {}), switches, phases, own.work, own.samples))
    return compared


def _switches(store: Store) -> Mapping[str, str]:
    """Return the leaf switch of each node; none where the file cannot be read: then nodes alone place runs."""
    try:
        return store.switches
    except MalformedError as error:
        log.warning("explained without switches: %s", error)
        return {}


def _with_peers(own: Mapping[str, OwnSegments], evidence: Mapping[str, PeerEvidence]) -> dict[str, Segments]:
    return {run_id: segments_of(segments, evidence[run_id]) for run_id, segments in own.items()}
