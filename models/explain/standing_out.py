"""Signs in a run's segments by themselves: few that stand out, and work that falls on one rank after another."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats

STALL_SHARE = 0.05  # of the segments at most: what happens more often is no stall
USUAL_STEPS = 2.0  # by which a segment stands out


def standing_out(of: Mapping[str, Floats], time: float) -> Floats:
    """Time in the few segments that stand out by it: the rank did nothing; the fabric did; the rank computed on.

    of: columns of the rank that came last, shape (n_segments,); time: the usual segment's, seconds. Shape
    (n_segments, 3), seconds. A process that is stopped, or a frame that is sent again after a timeout, costs once what
    a step takes several times; it neither runs nor waits for a core meanwhile. A compiler, or a collector of garbage,
    runs.
    """
    idle = of["compute"] - of["run_queue_wait"] - of["cpu_user"] - of["cpu_system"]
    columns = []
    for seconds in (np.nan_to_num(idle), of["fabric"], np.nan_to_num(of["cpu_user"])):
        beyond = seconds - np.median(seconds)
        stands_out = beyond > USUAL_STEPS * time
        columns.append(np.where(stands_out & (stands_out.mean() <= STALL_SHARE), beyond, 0.0))
    return np.column_stack(columns)


def uneven(work: Floats, culprit: NDArray[np.int64]) -> Floats:
    """By how much the work of the rank that came last exceeds that of the rank with most work over the whole run.

    work: shape (n_segments, n_ranks), seconds; culprit: the place of the last rank, shape (n_segments,). One rank that
    is always slower makes nothing of it: the mean is what the work costs for falling on one rank after another.
    """
    if work.shape[1] == 1:
        return np.zeros(len(work))
    return np.asarray(np.take_along_axis(work, culprit[:, None], axis=1)[:, 0] - work.mean(axis=0).max())
