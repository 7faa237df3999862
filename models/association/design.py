"""Nuisance terms taken out of columns and outcome before they are compared: drift in time, and cohorts."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray
from sklearn.preprocessing import SplineTransformer

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

RUNS_MIN = 20  # two blocks
BLOCK_RUNS = 10  # consecutive runs, among which drift is taken to be constant
RUNS_A_KNOT = 15
KNOTS = (3, 12)  # at least, at most
COHORTS_AT_ONCE = 100  # more would make a large basis
SWEEPS = 4  # of the projections in turn, where there are more
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Design:
    """Design of n runs: `order` sorts them by time, and everything else is in that order.

    `starts` are the first places of blocks of runs, `blocks` (n_blocks, n) sums over each; `cohorts` (n_cohorts, n)
    takes the mean of each cohort, `member` (n,) numbers the cohort of each run. `basis` (n, n_columns) is orthonormal,
    of smooth trends and, unless they are many, of cohorts, within blocks.
    """

    order: Ints
    starts: Ints
    blocks: scipy.sparse.csr_array
    cohorts: scipy.sparse.csr_array
    member: Ints
    basis: Floats

    @classmethod
    def of(cls, started_ns: Ints, cohort: Ints, *, drift: bool = True) -> Self:
        """Make the design of runs with these starts and cohort numbers, (n,). Raises: InvalidInputError for too few.

        drift: take out smooth trends, and compare within blocks; else all runs are one block.
        """
        if len(started_ns) < RUNS_MIN:
            raise InvalidInputError(f"{len(started_ns)} runs: expected {RUNS_MIN} or more")
        order = np.argsort(started_ns, kind="stable").astype(np.int64)
        count = len(order)
        blocks_of = count // BLOCK_RUNS if drift else 1
        starts = (np.arange(blocks_of, dtype=np.int64) * count) // blocks_of
        blocks = summing(np.searchsorted(starts, np.arange(count), side="right") - 1)
        member = np.unique(cohort[order], return_inverse=True)[1].astype(np.int64)
        cohorts = summing(member) @ scipy.sparse.diags_array(1.0 / np.bincount(member)[member])
        bare = cls(order, starts, blocks, cohorts, member, np.empty((count, 0)))
        trends = _trends(count) if drift else np.ones((count, 1))
        columns = [trends] if bare.has_many_cohorts else [trends, np.eye(len(cohorts.indptr) - 1)[member]]
        return replace(bare, basis=_orthonormal(bare.without(np.column_stack(columns))))

    @property
    def has_many_cohorts(self) -> bool:
        """Return whether cohort means are taken out in turn with the trends, not at once."""
        return bool(self.cohorts.shape[0] > COHORTS_AT_ONCE)

    @property
    def sizes(self) -> Ints:
        """Runs in each block."""
        return np.diff(self.starts, append=len(self.order))

    @property
    def freedom(self) -> float:
        """The share of the degrees of freedom within blocks that trends and cohorts leave."""
        within = len(self.order) - len(self.starts)
        cohorts = self.cohorts.shape[0] - 1 if self.has_many_cohorts else 0
        return float(max(within - self.basis.shape[1] - cohorts, 1) / within)

    def without(self, columns: Floats) -> Floats:
        """Residuals of columns (n, m) in the order of time, less trends and the means of cohorts and blocks."""
        left = self._within_blocks(np.asarray(columns, np.float64))
        left -= self.basis @ (self.basis.T @ left)
        for _ in range(SWEEPS if self.has_many_cohorts else 0):
            left = self._within_blocks(left - (self.cohorts @ left)[self.member])
            left -= self.basis @ (self.basis.T @ left)
        return left

    def _within_blocks(self, columns: Floats) -> Floats:
        left: Floats = columns - np.repeat(self.block_sums(columns) / self.sizes[:, None], self.sizes, axis=0)
        return left

    def block_sums(self, columns: Floats) -> Floats:
        """Sums over each block, shape (n_blocks, m)."""
        sums: Floats = self.blocks @ columns
        return sums


def _trends(count: int) -> Floats:
    """Return smooth functions of the place in time, (count, n_functions)."""
    knots = int(np.clip(count // RUNS_A_KNOT, *KNOTS))
    places = np.arange(count, dtype=np.float64)[:, None]
    trends: Floats = SplineTransformer(n_knots=knots, degree=3).fit_transform(places)
    return trends


def _orthonormal(columns: Floats) -> Floats:
    """An orthonormal basis of the span of columns (n, m), for n much larger than m."""
    sizes, directions = np.linalg.eigh(columns.T @ columns)
    kept = sizes > 1e-10 * sizes[-1]
    basis: Floats = columns @ (directions[:, kept] / np.sqrt(sizes[kept]))
    return basis


def summing(member: Ints) -> scipy.sparse.csr_array:
    """The matrix (n_groups, n) whose product sums the rows of each group; faster than `reduceat` along rows."""
    count = len(member)
    groups = int(member.max()) + 1 if count else 0
    return scipy.sparse.csr_array((np.ones(count), (member, np.arange(count))), shape=(groups, count))


def ranks_in_cohorts(columns: Floats, member: Ints) -> Floats:
    """Ranks of values (n, m) within their cohorts, scaled to 0 ... 1, ties by their mean; missing stays NaN."""
    table = pd.DataFrame(columns)
    by_cohort = table.groupby(member)
    places: Floats = ((by_cohort.rank() - 0.5) / by_cohort.transform("count")).to_numpy(np.float64)
    return places
