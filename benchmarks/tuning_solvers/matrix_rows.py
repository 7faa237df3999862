"""Features of a sparse matrix from a sample of its rows."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crosswind.data.schema.prediction import Floats

Matrix: TypeAlias = sparse.csr_array
Vector: TypeAlias = Floats
Integers: TypeAlias = npt.NDArray[np.int64]

TINY = 1e-300
SAMPLE = 96  # rows
PARTNERS = 32  # rows whose entries are looked up across the diagonal
LONGEST = 64  # entries that are looked at in a row


@dataclass(frozen=True)
class Entries:
    """The first entries of some rows: the place of each one's row in the sample, its column and its value."""

    row: Integers
    line: Integers
    column: Integers
    value: Vector

    @classmethod
    def of(cls, matrix: Matrix, row: Integers, most: int = LONGEST) -> "Entries":
        first = matrix.indptr[row]
        length = np.minimum(matrix.indptr[row + 1] - first, most)
        line = np.repeat(np.arange(len(row)), length)
        place = np.arange(len(line)) + np.repeat(first - (length.cumsum() - length), length)
        return cls(row, line, matrix.indices[place], matrix.data[place])

    def sums(self, values: Vector) -> Vector:
        """Return the sum of the values in each row."""
        return np.bincount(self.line, values, len(self.row))


def row_features(matrix: Matrix, random: np.random.Generator) -> dict[str, float]:
    """Features of a random sample of rows."""
    row = random.integers(0, matrix.shape[0], SAMPLE)
    entries = Entries.of(matrix, row)
    return {
        **_diagonal(entries),
        **_spread(entries),
        "symmetric_pattern_ratio": _partners(matrix, row[:PARTNERS]),
    }


def _diagonal(entries: Entries) -> dict[str, float]:
    """Sign and dominance of the diagonal; what is left of a row's sum is 0 for a Laplacian, below for Helmholtz."""
    is_diagonal = entries.column == entries.row[entries.line]
    diagonal = entries.sums(entries.value * is_diagonal)
    magnitude = np.maximum(np.abs(diagonal), TINY)
    off = np.maximum(entries.sums(np.abs(entries.value)) - np.abs(diagonal), 0)
    excess = np.sort((entries.sums(entries.value) / magnitude).clip(-10, 10))
    dominance = np.sort((off / magnitude).clip(0, 10))
    opposite = (entries.value * np.sign(diagonal)[entries.line] < 0) & ~is_diagonal
    count = len(diagonal)
    return {
        "positive_diagonal_ratio": np.count_nonzero(diagonal > 0) / count,
        "zero_diagonal_ratio": np.count_nonzero(diagonal == 0) / count,
        "dominant_ratio": np.count_nonzero(off <= magnitude * (1 + 1e-9)) / count,
        "strictly_dominant_ratio": np.count_nonzero(off < magnitude * 0.99) / count,
        "off_diagonal_to_diagonal_median": float(dominance[count // 2]),
        "off_diagonal_to_diagonal_p95": float(dominance[int(0.95 * count)]),
        "row_sum_to_diagonal_mean": float(excess.sum()) / count,
        "row_sum_to_diagonal_p05": float(excess[int(0.05 * count)]),
        "opposite_sign_ratio": np.count_nonzero(opposite) / max(np.count_nonzero(~is_diagonal), 1),
    }


def _spread(entries: Entries) -> dict[str, float]:
    """Return how many magnitudes the diagonal and the couplings span, and how far from the diagonal these are."""
    apart = np.abs(entries.column - entries.row[entries.line])
    logs = np.log(np.maximum(np.abs(entries.value), TINY))
    diagonal, line, off = logs[apart == 0], entries.line[apart > 0], logs[apart > 0]
    if not len(off):
        off, line = np.zeros(1), np.zeros(1, dtype=np.int64)
    count = np.maximum(np.bincount(line, minlength=len(entries.row)), 1)
    mean = np.bincount(line, off, len(entries.row)) / count
    return {
        "log_distance_mean": float(np.log1p(apart.mean())),
        "log_distance_max": float(np.log1p(apart.max())),
        "log_diagonal_range": float(np.ptp(diagonal)) if len(diagonal) else 0.0,
        "log_diagonal_std": float(diagonal.std()) if len(diagonal) else 0.0,
        "log_coupling_std": float(off.std()),
        "log_coupling_std_in_row": float(np.sqrt(np.square(off - mean[line]).sum() / len(off))),
    }


def _partners(matrix: Matrix, row: Integers) -> float:
    """Return the share of entries with one across the diagonal."""
    entries = Entries.of(matrix, row, LONGEST // 4)
    across = Entries.of(matrix, entries.column)
    met = across.column == row[entries.line][across.line]
    return float(np.count_nonzero(across.sums(met.astype(np.float64)))) / max(len(entries.line), 1)
