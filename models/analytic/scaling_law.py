"""Amdahl's law with communication, for programs known by their times at some scales alone."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import nnls

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

HUBER_SPREADS = 1.345  # 95 % efficient on normal errors (Huber 1981)
REWEIGHTINGS = 20
SPREAD_MIN = 1e-6  # of relative errors


@dataclass(frozen=True)
class ScalingLaw:
    """T(p) = serial + parallel / p + tree log2 p + crosstalk (p - 1), in seconds, none negative.

    Sources: Amdahl 1967 (the first two); Gunther 2007, "Guerrilla capacity planning", universal scalability law
    (crosstalk); log2 p is the depth of a reduction tree.
    """

    serial_seconds: float
    parallel_seconds: float
    tree_seconds: float
    crosstalk_seconds: float

    @classmethod
    def fit(cls, ranks: Floats, seconds: Floats) -> Self:
        """Fit to times at some scales, (n,) each: non-negative least squares of relative errors, outliers weighed down.

        Raises: InvalidInputError.
        """
        ranks, seconds = np.asarray(ranks, np.float64), np.asarray(seconds, np.float64)
        _check(ranks, seconds)
        terms = _terms(ranks) / seconds[:, None]
        weights = np.ones(len(ranks))
        for _ in range(REWEIGHTINGS):
            constants, _ = nnls(terms * weights[:, None], weights)
            errors = terms @ constants - 1
            spread = max(1.4826 * float(np.median(np.abs(errors))), SPREAD_MIN)  # of the normal distribution
            weights = np.sqrt(np.minimum(1.0, HUBER_SPREADS * spread / np.maximum(np.abs(errors), spread * 1e-9)))
        return cls(*(float(constant) for constant in constants))

    def seconds(self, ranks: Floats) -> Floats:
        """The times at numbers of ranks, (n,)."""
        constants = np.array([self.serial_seconds, self.parallel_seconds, self.tree_seconds, self.crosstalk_seconds])
        return np.asarray(_terms(np.asarray(ranks, np.float64)) @ constants, np.float64)

    def fastest_ranks(self, most: int) -> int:
        """The number of ranks up to `most` at which a step is shortest, the fewest of equals."""
        ranks = np.arange(1, most + 1, dtype=np.float64)
        return int(np.argmin(self.seconds(ranks))) + 1


def _terms(ranks: Floats) -> Floats:
    return np.column_stack([np.ones_like(ranks), 1 / ranks, np.log2(ranks), ranks - 1])


def _check(ranks: Floats, seconds: Floats) -> None:
    if ranks.shape != seconds.shape or ranks.ndim != 1 or len(ranks) == 0:
        raise InvalidInputError(
            f"ranks have shape {ranks.shape} and seconds {seconds.shape}, expected (n,) each, n at least 1"
        )
    if not np.all(np.isfinite(ranks) & (ranks >= 1)):
        raise InvalidInputError(f"ranks hold {ranks.min()}, expected 1 or more")
    if not np.all(np.isfinite(seconds) & (seconds > 0)):
        raise InvalidInputError(f"seconds hold {seconds.min()}, expected positive numbers")
