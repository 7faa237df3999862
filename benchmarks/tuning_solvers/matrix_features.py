"""Features that a sparse matrix shows at a small part of the cost of a solve, to choose solver and preconditioner from.

Most come from a sample of rows. Three things touch all non-zeros: the test for symmetry (two products of matrix and
vector), one breadth-first search, and the probe of iterations, which stops early. Ratios are in [0, 1] unless said
otherwise; logarithms are natural.
"""

from collections.abc import Mapping

import numpy as np
from scipy import sparse

from benchmarks.tuning_solvers.matrix_levels import level_features, without_hubs
from benchmarks.tuning_solvers.matrix_probes import Start, further_probes, probe_features
from benchmarks.tuning_solvers.matrix_rows import Integers, Matrix, row_features
from crosswind.data.schema.errors import InvalidInputError

SYMMETRIC = 1e-10
HUB = 10  # times as many entries as the median row


def matrix_features(matrix: Matrix) -> dict[str, float]:
    """Features of a square sparse matrix of real numbers, by name. Raises: InvalidInputError."""
    rows = _checked(matrix)
    random = np.random.default_rng(0)
    start = _started(rows, random)
    lengths = np.diff(rows.indptr)
    middle = max(float(np.partition(lengths, len(lengths) // 2)[len(lengths) // 2]), 1.0)
    asymmetry = start.asymmetry(rows)
    levels = level_features(without_hubs(rows, lengths, HUB * middle))
    return {
        **_size(rows, lengths, middle),
        "asymmetry": asymmetry,
        "is_symmetric": float(asymmetry < SYMMETRIC),
        **row_features(rows, random),
        **levels,
        **probe_features(rows, start, asymmetry < SYMMETRIC, levels["log_level_work"]),
    }


def further_features(matrix: Matrix, features: Mapping[str, float]) -> dict[str, float]:
    """Return the features with those of longer probes: worth it where the choice by the first ones is unsure."""
    rows = _checked(matrix)
    start = Start.of(rows, np.random.default_rng(0))
    return {
        **features,
        **further_probes(rows, start, features["is_symmetric"] == 1, features["log_level_work"]),
    }


def _checked(matrix: Matrix) -> Matrix:
    if not sparse.issparse(matrix) or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(f"matrix has shape {getattr(matrix, 'shape', None)}, expected a square sparse matrix")
    return sparse.csr_array(matrix, dtype=np.float64)


def _started(rows: Matrix, random: np.random.Generator) -> Start:
    """A random direction and its image, which shows what a look at every entry would."""
    with np.errstate(all="ignore"):
        start = Start.of(rows, random)
    if not start.image.any() or not np.isfinite(start.image).all():
        raise InvalidInputError(f"matrix has {rows.nnz} entries, expected all finite and at least one not zero")
    return start


def _size(rows: Matrix, lengths: Integers, middle: float) -> dict[str, float]:
    """Numbers of rows and entries; `log_square_fill` is the most that the product with the transpose has, per entry."""
    count, entries, longest = rows.shape[0], rows.nnz, float(lengths.max())
    square = float(np.square(lengths, dtype=np.float64).sum()) / entries
    return {
        "log_rows": float(np.log(count)),
        "log_nonzeros": float(np.log(entries)),
        "nonzeros_per_row_mean": entries / count,
        "log_nonzeros_per_row_max": float(np.log(longest)),
        "log_longest_to_median": float(np.log(longest / middle)),
        "log_square_fill": float(np.log(square)),
        "nonzeros_per_row_cov": float(np.sqrt(max(square * count / entries - 1, 0.0))),
        "log_hubs": float(np.log1p(np.count_nonzero(lengths > HUB * middle))) if longest > HUB * middle else 0.0,
    }
