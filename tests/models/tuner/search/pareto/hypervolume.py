"""The volume that a front dominates, which the Pareto tuner makes larger."""

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.tuner.study.front import on_front


def hypervolume(values: Floats, behind: Floats) -> float:
    """Return the volume that the rows of (n, n_objectives) dominate before the reference point `behind`."""
    inside = values[np.all(values < behind, axis=1)]
    return _volume(inside[on_front(inside)] if len(inside) else inside, behind)


def _volume(front: Floats, behind: Floats) -> float:
    """Sum slabs along the last objective: the rows that begin before a slab are a front of one objective less."""
    if len(front) == 0:
        return 0.0
    if front.shape[1] == 1:
        return float(behind[0] - front.min())
    front = front[np.argsort(front[:, -1], kind="stable")]
    ends = np.append(front[1:, -1], behind[-1])
    slabs = zip(ends - front[:, -1], range(1, len(front) + 1), strict=True)
    return float(sum(depth * _volume(front[:rows, :-1], behind[:-1]) for depth, rows in slabs if depth > 0))
