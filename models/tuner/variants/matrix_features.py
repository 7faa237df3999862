"""What a sparse matrix shows without being solved: numbers from which to choose a solver and preconditioner.

Each costs a few passes over the non-zeros. Ratios are in [0, 1] unless said otherwise; logarithms are natural.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from crosswind.data.errors import InvalidInputError
from crosswind.data.prediction import Floats

Matrix: TypeAlias = sparse.csr_array
Integers: TypeAlias = npt.NDArray[np.int64]
TINY = 1e-300
STEPS = 20


def matrix_features(matrix: Matrix) -> dict[str, float]:
    """Features of a square sparse matrix of real numbers, by name. Raises: InvalidInputError."""
    rows = _checked(matrix)
    return {
        **_size(rows),
        **_symmetry(rows),
        **_diagonal(rows),
        **_ordering(rows),
        **_spread(rows),
        **_krylov(rows),
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
    """Bandwidth as it stands and after reverse Cuthill-McKee, and how many steps the graph is deep.

    The depth tells a line, a surface, a body and a network apart, and with them how a factorisation fills up:
    its logarithm is about 1, 1/2, 1/3 and 0 of the logarithm of the rows.
    """
    count = rows.shape[0]
    line = np.repeat(np.arange(count), np.diff(rows.indptr))
    distance = np.abs(line - rows.indices)
    order = csgraph.reverse_cuthill_mckee(sparse.csr_array(rows), symmetric_mode=False)
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    renumbered = np.abs(place[line] - place[rows.indices])
    depth = _levels(rows, int(order[0]))
    return {
        "log_bandwidth": float(np.log1p(distance.max())),
        "log_distance_mean": float(np.log1p(distance.mean())),
        "log_bandwidth_renumbered": float(np.log1p(renumbered.max())),
        "log_distance_renumbered": float(np.log1p(renumbered.mean())),
        "log_band_work": float(np.log1p(np.sum(_profile(place[line], place[rows.indices], count) ** 2))),
        "depth_exponent": float(np.log1p(depth) / np.log1p(count)),
    }


def _profile(line: Integers, column: Integers, count: int) -> Floats:
    """How far left of the diagonal each row begins: its square is the work of factorising within the envelope."""
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
    """How many magnitudes the diagonal, the rows, and the couplings within a row span."""
    diagonal = np.abs(rows.diagonal())
    known = np.log(diagonal[diagonal > 0]) if (diagonal > 0).any() else np.zeros(1)
    line = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    off = line != rows.indices
    logs = np.log(np.maximum(np.abs(rows.data[off]), TINY)) if off.any() else np.zeros(1)
    return {
        "log_diagonal_range": float(known.max() - known.min()),
        "log_diagonal_std": float(known.std()),
        "log_coupling_std": float(logs.std()),
        "log_coupling_std_in_row": float(np.sqrt(_within(line[off], logs, rows.shape[0]))) if off.any() else 0.0,
    }


def _within(line: Integers, logs: Floats, count: int) -> float:
    """The mean over rows of the variance of a row's values."""
    number = np.maximum(np.bincount(line, minlength=count), 1)
    mean = np.bincount(line, logs, count) / number
    return float(np.mean(np.bincount(line, (logs - mean[line]) ** 2, count) / number))


def _krylov(rows: Matrix) -> dict[str, float]:
    """What STEPS steps of GMRES on the matrix divided by its diagonal show, from a random vector.

    `log_residual_5` and `log_residual_20` are logarithms of the residual's norm over the first one's: plain iterations
    go on at about that rate. A Ritz value left of zero says that the matrix is not definite; a wide spread, that it is
    ill-conditioned. Source: Saad, Iterative methods for sparse linear systems, 2003, algorithm 6.9.
    """
    diagonal = rows.diagonal()
    inverse = 1 / np.where(diagonal == 0, 1.0, diagonal)
    small = _arnoldi(rows, inverse)
    ritz = np.linalg.eigvals(small[:-1])
    return {
        "log_residual_5": _log_residual(small, min(5, small.shape[1])),
        "log_residual_20": _log_residual(small, small.shape[1]),
        "ritz_real_min": float(np.clip(ritz.real.min(), -10, 10)),
        "log_ritz_spread": float(np.log(max(abs(ritz).max(), TINY) / max(abs(ritz).min(), 1e-12))),
        "ritz_imaginary_max": float(np.clip(abs(ritz.imag).max(), 0, 10)),
    }


def _arnoldi(rows: Matrix, inverse: Floats) -> Floats:
    """The Hessenberg matrix of at most STEPS steps, shape (steps + 1, steps)."""
    basis = np.zeros((STEPS + 1, len(inverse)))
    small = np.zeros((STEPS + 1, STEPS))
    start = np.random.default_rng(0).normal(size=len(inverse))
    basis[0] = start / np.linalg.norm(start)
    for step in range(STEPS):
        vector = inverse * (rows @ basis[step])
        for _ in range(2):  # once more is enough to stay orthogonal
            share = basis[: step + 1] @ vector
            vector = vector - share @ basis[: step + 1]
            small[: step + 1, step] += share
        length = float(np.linalg.norm(vector))
        small[step + 1, step] = length
        if length < 1e-12:
            return small[: step + 2, : step + 1]
        basis[step + 1] = vector / length
    return small


def _log_residual(small: Floats, steps: int) -> float:
    """GMRES' relative residual after so many steps."""
    first = np.zeros(steps + 1)
    first[0] = 1
    least = small[: steps + 1, :steps]
    left = first - least @ np.linalg.lstsq(least, first, rcond=None)[0]
    return float(np.log(max(float(np.linalg.norm(left)), 1e-12)))
