"""Exposure of runs to candidates: the share of a run that each was there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse
import scipy.stats

from crosswind.data.schema.answers.effects import Neighbour, NeighbourKind, NeighbourScope
from crosswind.data.schema.prediction import Floats
from crosswind.models.association.design import Ints

SHARE_MIN = 0.02  # of a run's time and nodes: less is a run that ends as this one begins
EXPOSED_MIN = 5  # runs exposed to a candidate, and as many not exposed
CANDIDATES_MAX = 400  # those of most exposed runs: among thousands none would be significant
COLUMNS_AT_ONCE = 64


@dataclass(frozen=True)
class Exposures:
    """Shares of runs during which candidates were there, sparse, (n_runs, n_candidates)."""

    candidates: tuple[Neighbour, ...]
    shares: scipy.sparse.csc_matrix

    @property
    def exposed(self) -> Ints:
        """Number of runs exposed to each candidate, (n_candidates,)."""
        return np.asarray(np.diff(self.shares.indptr), np.int64)

    def share(self, column: int) -> Floats:
        """Shares of one candidate, (n_runs,)."""
        return np.asarray(self.shares[:, [column]].toarray()[:, 0], np.float64)

    def chosen(self, kept: Sequence[int] | Ints) -> "Exposures":
        """The exposures to the candidates at these places."""
        return Exposures(tuple(self.candidates[place] for place in kept), self.shares[:, list(kept)])

    def rows(self, order: Ints) -> "Exposures":
        """The exposures of the runs at these places, in this order."""
        return Exposures(self.candidates, self.shares[order])

    def chunks(self) -> Iterator[tuple[Floats, Floats]]:
        """Ranks of the shares, and 1 where a share is positive, a few columns at a time, (n_runs, m) each."""
        for start in range(0, len(self.candidates), COLUMNS_AT_ONCE):
            part = self.shares[:, start : start + COLUMNS_AT_ONCE]
            yield _ranks(part), np.asarray(part.toarray() > 0, np.float64)


def exposures(meetings: pd.DataFrame, present: pd.DataFrame, runs: int, scope: NeighbourScope) -> Exposures:
    """Exposures to users, workloads and jobs; two jobs of one user at the same time count twice."""
    parts = [_of_kind(kind, scope, meetings, present[kind.value], runs=runs) for kind in NeighbourKind]
    return joined(parts)


def joined(parts: Sequence[Exposures]) -> Exposures:
    """Join exposures of the same runs to different candidates."""
    names = tuple(candidate for part in parts for candidate in part.candidates)
    return Exposures(names, scipy.sparse.hstack([part.shares for part in parts], format="csc"))


def enough(whole: Exposures) -> Exposures:
    """The candidates with enough exposed and enough unexposed runs; of very many those with most exposed runs."""
    runs, exposed = whole.shares.shape[0], whole.exposed
    kept = np.flatnonzero((exposed >= EXPOSED_MIN) & (runs - exposed >= EXPOSED_MIN))
    most = kept[np.argsort(-exposed[kept], kind="stable")[:CANDIDATES_MAX]]
    return whole.chosen(np.sort(most))


def _of_kind(
    kind: NeighbourKind, scope: NeighbourScope, meetings: pd.DataFrame, whose: "pd.Series[str]", *, runs: int
) -> Exposures:
    codes, names = pd.factorize(whose, sort=True)
    column = codes[meetings["presence"].to_numpy(np.int64)]
    is_known = column >= 0
    places = (meetings["run"].to_numpy(np.int64)[is_known], column[is_known])
    shares = scipy.sparse.csc_matrix(
        (meetings["share"].to_numpy(np.float64)[is_known], places), shape=(runs, len(names))
    )
    shares.sum_duplicates()
    shares.data[shares.data < SHARE_MIN] = 0.0
    shares.eliminate_zeros()
    seen = np.flatnonzero(np.diff(shares.indptr))
    candidates = tuple(Neighbour(kind, scope, str(names[place])) for place in seen.tolist())
    return Exposures(candidates, shares[:, seen])


def _ranks(part: scipy.sparse.csc_matrix) -> Floats:
    """Average ranks of each column (n_runs, m); what is not stored is 0, the least."""
    rows, columns = part.shape
    stored = np.diff(part.indptr)
    ranks = np.tile((rows - stored + 1) / 2, (rows, 1))
    for column in range(columns):
        own = slice(part.indptr[column], part.indptr[column + 1])
        ranks[part.indices[own], column] = rows - stored[column] + scipy.stats.rankdata(part.data[own])
    return ranks
