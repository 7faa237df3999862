"""Keys of two runs laid over each other by the path of the operator.

A path that only one run has is compared at the innermost operator around it below which the other run, too, has one
that only it has: so aten::cudnn_convolution of one library meets aten::miopen_convolution of another in
aten::_convolution. What meets nothing was added, or is gone.
"""

import numpy as np

from crosswind.data.traces.trace import Integers
from crosswind.models.traces.difference.paths import NOTHING, Paths
from crosswind.models.traces.difference.step_parts import PARTS


def aligned(first: Integers, second: Integers, paths: Paths) -> tuple[Integers, Integers]:
    """Return by which key each key of two runs is compared."""
    lone = [np.setdiff1d(first, second).tolist(), np.setdiff1d(second, first).tolist()]
    both = set.intersection(*({above for key in keys for above in _around(key, paths)} for keys in lone))
    met = {key: next((one for one in _around(key, paths) if one in both), key) for keys in lone for key in keys}
    return _replaced(first, met), _replaced(second, met)


def summed(values: np.ndarray, keys: Integers, whole: Integers) -> np.ndarray:
    """Return values of (..., n_keys) by the keys of `whole`, (..., n_whole), summed where keys are equal."""
    result = np.zeros((len(whole), *values.shape[:-1]), values.dtype)
    np.add.at(result, np.searchsorted(whole, keys), np.moveaxis(values, -1, 0))
    return np.moveaxis(result, 0, -1)


def _around(key: int, paths: Paths) -> list[int]:
    """Return the keys of the operators around a key's last range, the innermost first."""
    path, part = divmod(key, PARTS)
    around = []
    while (path := paths.parent[path]) > NOTHING:
        if paths.is_operator[path]:
            around.append(path * PARTS + part)
    return around


def _replaced(keys: Integers, by: dict[int, int]) -> Integers:
    return np.array([by.get(key, key) for key in keys.tolist()], np.int64)
