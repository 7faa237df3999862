"""Time of a cause on one rank that was masked: without the cause the run would have waited for the next rank.

Of the time x that a cause took on the rank that arrived last, only as much is lost as makes it later than the others:
x - max(0, time of the others without the cause - time of the last rank without it), segment by segment.

Source: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025, for replaying
a step without its slowest part.
"""

from collections.abc import Sequence

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.cohort.columns import COLUMNS, OF_ALL_RANKS
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.evidence.step_columns import LOCAL_PHASES
from crosswind.models.explain.split import resampled

LOCAL = [COLUMNS.index(name) for name in LOCAL_PHASES]


def masked_seconds(run: Segments, usual: Floats, columns: Sequence[str], *, seed: int = 0) -> Floats:
    """Return seconds a segment of these columns' cause that were masked, resampled in blocks, shape (REPLICATES,).

    usual: shape (len(COLUMNS),). The time of the others is their median, so of many ranks this is a lower bound. Of
    evidence that belongs to all ranks, and of a single rank, nothing is masked.
    """
    places = [COLUMNS.index(name) for name in columns if name not in OF_ALL_RANKS]
    taken = np.maximum(np.nansum(run.values[:, places] - usual[places], axis=1), 0.0)
    behind = _without(run.peers, places) - _without(run.values, places)
    seconds = np.clip(np.nan_to_num(behind, nan=0.0), 0.0, taken)
    return resampled(seconds[:, None], np.random.default_rng(seed))[:, 0]


def _without(values: Floats, places: Sequence[int]) -> Floats:
    return np.asarray(values[:, LOCAL].sum(axis=1) - np.nansum(values[:, places], axis=1))
