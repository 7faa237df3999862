"""Features that a sparse matrix shows without being solved: numbers from which to choose solver and preconditioner.

Each costs a few passes over the non-zeros; those of `matrix_probes` cost some products of matrix and vector. Ratios are
in [0, 1] unless said otherwise; logarithms are natural.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from benchmarks.tuning_solvers.matrix_probes import TINY, Matrix, probe_features, without_hubs
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

Integers: TypeAlias = npt.NDArray[np.int64]


def matrix_features(matrix: Matrix) -> dict[str, float]:
    """Features of a square sparse matrix of real numbers, by name. Raises: InvalidInputError."""
    rows = _checked(matrix)
    symmetry = _symmetry(rows)
    return {
        **_size(rows),
        **symmetry,
        **_diagonal(rows),
        **_ordering(rows),
        **_spread(rows),
        **probe_features(rows, is_symmetric=symmetry["is_symmetric"] == 1),
    }


def _checked(matrix: Matrix) -> Matrix:
    if not sparse.issparse(matrix) or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(f"matrix has shape {getattr(matrix, 'shape', None)}, expected a square sparse matrix")
    rows = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if rows.nnz == 0 or not np.isfinite(rows.data).all():
        raise InvalidInputError(f"matrix has {rows.nnz} non-zeros, expected at least one and all of them finite")
    return rows


def _size(rows: Matrix) -> dict[str, float]:
    lengths = np.diff(rows.indptr)
    return {
        "log_rows": float(np.log(rows.shape[0])),
        "log_nonzeros": float(np.log(rows.nnz)),
        "nonzeros_per_row_mean": float(lengths.mean()),
        "log_nonzeros_per_row_max": float(np.log(lengths.max())),
        "nonzeros_per_row_cov": float(lengths.std() / lengths.mean()),
    }


def _symmetry(rows: Matrix) -> dict[str, float]:
    """Share of entries with a partner across the diagonal, and how far values are from symmetric (0) or skew (2)."""
    pattern = sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    both = (pattern * pattern.T.tocsr()).nnz
    apart = rows - rows.T.tocsr()
    asymmetry = float(np.linalg.norm(apart.data) / np.linalg.norm(rows.data)) if apart.nnz else 0.0
    return {
        "symmetric_pattern_ratio": both / rows.nnz,
        "asymmetry": asymmetry,
        "is_symmetric": float(asymmetry < 1e-10),
    }


def _diagonal(rows: Matrix) -> dict[str, float]:
    """Sign and dominance of the diagonal; what is left of a row's sum is 0 for a Laplacian, below for Helmholtz."""
    diagonal = rows.diagonal()
    magnitude = np.maximum(np.abs(diagonal), TINY)
    off = np.maximum(np.asarray(abs(rows).sum(axis=1)).ravel() - np.abs(diagonal), 0)
    excess = (np.asarray(rows.sum(axis=1)).ravel() / magnitude).clip(-10, 10)
    dominance = (off / magnitude).clip(0, 10)
    off_signs = rows.data * np.repeat(np.sign(diagonal), np.diff(rows.indptr)) < 0
    return {
        "positive_diagonal_ratio": float((diagonal > 0).mean()),
        "zero_diagonal_ratio": float((diagonal == 0).mean()),
        "dominant_ratio": float((off <= magnitude * (1 + 1e-9)).mean()),
        "strictly_dominant_ratio": float((off < magnitude * 0.99).mean()),
        "off_diagonal_to_diagonal_median": float(np.median(dominance)),
        "off_diagonal_to_diagonal_p95": float(np.quantile(dominance, 0.95)),
        "row_sum_to_diagonal_mean": float(excess.mean()),
        "row_sum_to_diagonal_p05": float(np.quantile(excess, 0.05)),
        "opposite_sign_ratio": float(off_signs.sum() / max(rows.nnz - np.count_nonzero(diagonal), 1)),
    }


def _ordering(rows: Matrix) -> dict[str, float]:
    """Bandwidth as it stands, and after reverse Cuthill-McKee of the graph without hubs, and how deep that graph is.

    The depth tells a line, a surface, a body and a network apart, and with them how a factorisation fills up:
    its logarithm is about 1, 1/2, 1/3 and 0 of the logarithm of the rows.
    """
    distance = np.abs(_lines(rows) - rows.indices)
    graph = without_hubs(rows)
    count = graph.shape[0]
    order = csgraph.reverse_cuthill_mckee(graph, symmetric_mode=False)
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    line, column = place[_lines(graph)], place[graph.indices]
    return {
        "log_bandwidth": float(np.log1p(distance.max())),
        "log_distance_mean": float(np.log1p(distance.mean())),
        "log_bandwidth_renumbered": float(np.log1p(np.abs(line - column).max(initial=0))),
        "log_distance_renumbered": float(np.log1p(np.abs(line - column).mean())) if graph.nnz else 0.0,
        "log_band_work": float(np.log1p(np.sum(_profile(line, column, count) ** 2))),
        "depth_exponent": float(np.log1p(_levels(graph, int(order[0]))) / np.log1p(count)),
        "log_hubs": float(np.log1p(rows.shape[0] - count)),
    }


def _lines(rows: Matrix) -> Integers:
    """The row of each entry."""
    return np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))


def _profile(line: Integers, column: Integers, count: int) -> Floats:
    """Return how far left of the diagonal each row begins: its square is the work to factorise within the envelope."""
    first = np.arange(count)
    np.minimum.at(first, line, column)
    return (np.arange(count) - first).astype(np.float64)


def _levels(rows: Matrix, start: int) -> int:
    """The number of steps from a row to the farthest one that can be reached: the last one found."""
    order, before = csgraph.breadth_first_order(rows, start, directed=False)
    vertex, steps = int(order[-1]), 0
    while vertex != start:
        vertex, steps = int(before[vertex]), steps + 1
    return steps


def _spread(rows: Matrix) -> dict[str, float]:
    """Return how many magnitudes the diagonal, the rows, and the couplings within a row span."""
    diagonal = np.abs(rows.diagonal())
    log_diagonal = np.log(diagonal[diagonal > 0]) if (diagonal > 0).any() else np.zeros(1)
    line = _lines(rows)
    off = line != rows.indices
    logs = np.log(np.maximum(np.abs(rows.data[off]), TINY)) if off.any() else np.zeros(1)
    return {
        "log_diagonal_range": float(log_diagonal.max() - log_diagonal.min()),
        "log_diagonal_std": float(log_diagonal.std()),
        "log_coupling_std": float(logs.std()),
        "log_coupling_std_in_row": float(np.sqrt(_within(line[off], logs, rows.shape[0]))) if off.any() else 0.0,
    }


def _within(line: Integers, logs: Floats, count: int) -> float:
    """The mean over rows of the variance of a row's values."""
    number = np.maximum(np.bincount(line, minlength=count), 1)
    mean = np.bincount(line, logs, count) / number
    return float(np.mean(np.bincount(line, (logs - mean[line]) ** 2, count) / number))
