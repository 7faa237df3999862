"""Segments of runs and their cohorts, read from a store."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence

import pandas as pd

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.columns import COMPARED_SAMPLES, OWN_COLUMNS, SAMPLED
from crosswind.models.explain.cohort.features import FORM, Features, unpacked
from crosswind.models.explain.cohort.own_segments import OwnSegments, own_segments
from crosswind.models.explain.cohort.peer_evidence import peer_evidence
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
    return _with_peers(own, peer_evidence(_compared(store, runs, nodes_of(ranks), own)))


def cohort_segments(
    store: Store, runs: Sequence[Run], features: Mapping[str, Features], whole: Mapping[str, OwnSegments]
) -> tuple[dict[str, Segments], dict[str, Segments]]:
    """Return by run id the whole segments, and the condensed ones of all runs, both with what comparing them gives.

    features: of those of the runs that recorded collectives.
    """
    own = {run.run_id: features[run.run_id].segments for run in runs if run.run_id in features}
    nodes = {run_id: features[run_id].nodes for run_id in own}
    evidence = peer_evidence(_compared(store, runs, nodes, own))
    return _with_peers(whole, evidence), _with_peers(own, evidence)


def stored_features(store: Store, run_ids: Collection[str]) -> dict[str, Features | None]:
    """Return the features that are stored and still hold, by run; None of a run without collectives."""
    with store.catalog.read() as session:
        contents = session.verdicts.features(run_ids, FORM)
    return {run_id: None if content is None else unpacked(content) for run_id, content in contents.items()}


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


def nodes_of(ranks: Sequence[Rank]) -> dict[str, dict[int, str]]:
    """Return by run the nodes of its ranks."""
    nodes: dict[str, dict[int, str]] = {}
    for rank in ranks:
        nodes.setdefault(rank.run_id, {})[rank.rank] = rank.node
    return nodes


def _compared(
    store: Store, runs: Sequence[Run], nodes: Mapping[str, Mapping[int, str]], segments: Mapping[str, OwnSegments]
) -> list[ComparedRun]:
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
