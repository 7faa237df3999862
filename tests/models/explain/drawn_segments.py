"""Segments made for tests: from step rows, or from others by leaving out the evidence of other runs."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.models.explain.cohort.columns import COLUMNS, COMPARED_SAMPLES, OWN_COLUMNS
from crosswind.models.explain.cohort.own_segments import GRID_COLUMNS, OwnSegments, own_segments
from crosswind.models.explain.cohort.segments import PeerEvidence, Segments, segments_of
from crosswind.models.explain.evidence.indicators import ComparedRun
from crosswind.models.explain.evidence.step_columns import PHASES

ALONE = PeerEvidence()
OWN = [COLUMNS.index(name) for name in OWN_COLUMNS]
NO_SAMPLES = dict.fromkeys((sampled.column for sampled in COMPARED_SAMPLES), np.nan)


def segments_from(
    steps: pd.DataFrame, sampled: Mapping[str, float] = MappingProxyType({}), evidence: PeerEvidence = ALONE
) -> Segments | None:
    """Return the segments of a run's step rows."""
    compared = steps[steps["step"] >= WARM_UP_STEPS]
    rows = {
        name: compared[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in ("step", "rank", *GRID_COLUMNS)
    }
    own = own_segments("r", rows, sampled)
    return None if own is None else segments_of(own, evidence)


def own_of(segments: Segments) -> OwnSegments:
    """Return the same without the evidence of other runs."""
    return OwnSegments(
        segments.run_id,
        values=segments.values[:, OWN],
        culprits=segments.culprits,
        peers=segments.peers[:, OWN],
        of_ranks=segments.of_ranks[:, OWN],
        work=segments.work,
        samples=NO_SAMPLES,
        count=segments.count,
    )


def compared_runs(
    runs: Sequence[Run],
    segments: Sequence[Segments],
    ranks: Sequence[Rank] = (),
    switches: Mapping[str, str] = MappingProxyType({}),
) -> list[ComparedRun]:
    """Return the facts by which those of the runs are compared that have segments."""
    own = {run_segments.run_id: run_segments for run_segments in segments}
    nodes: dict[str, dict[int, str]] = {run.run_id: {} for run in runs}
    for rank in ranks:
        nodes[rank.run_id][rank.rank] = rank.node
    return [
        ComparedRun(run, nodes[run.run_id], switches, _phases(own[run.run_id]), own[run.run_id].work, NO_SAMPLES)
        for run in runs
        if run.run_id in own
    ]


def _phases(segments: Segments) -> dict[str, float]:
    return {phase: float(segments.values[:, COLUMNS.index(phase)].mean()) for phase in PHASES}
