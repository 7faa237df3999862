"""Time that a cause on one rank hid: without it the run would have waited for the next rank.

Of the time x that a cause took on the rank that arrived last, only as much is lost as makes it later than the others:
x - max(0, what the others spent without the cause - what the last rank spent without it), segment by segment.

Source: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025, for replaying
a step without its slowest part.
"""

from collections.abc import Sequence

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.segments import COLUMNS, LOCAL_PHASES, OF_ALL_RANKS, Segments
from crosswind.models.explain.split import resampled

LOCAL = [COLUMNS.index(name) for name in LOCAL_PHASES]


def hidden(run: Segments, usual: Floats, columns: Sequence[str], *, seed: int = 0) -> Floats:
    """Seconds a segment that these columns' cause hid, drawn again in blocks, shape (REPLICATES,).

    The others are the median of them, so of many ranks it is the least. Nothing of what belongs to all ranks, nor of
    a single rank.
    """
    places = [COLUMNS.index(name) for name in columns if name not in OF_ALL_RANKS]
    taken = np.maximum(np.nansum(run.values[:, places] - usual[places], axis=1), 0.0)
    behind = _without(run.peers, places) - _without(run.values, places)
    seconds = np.clip(np.nan_to_num(behind, nan=0.0), 0.0, taken)
    return resampled(seconds[:, None], np.random.default_rng(seed))[:, 0]


def _without(values: Floats, places: Sequence[int]) -> Floats:
    return np.asarray(values[:, LOCAL].sum(axis=1) - np.nansum(values[:, places], axis=1))
