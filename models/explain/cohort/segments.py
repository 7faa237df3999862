"""Segments of a run with all evidence: its own, and that of its peers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.cohort.columns import COLUMNS, OF_ALL_RANKS, OF_LAST_RANK, OWN_COLUMNS
from crosswind.models.explain.cohort.own_segments import MANY_RANKS, OwnSegments
from crosswind.models.explain.evidence.step_columns import PHASES

COMPUTE = OWN_COLUMNS.index("compute")
PLACE = {name: place for place, name in enumerate(COLUMNS)}
OWN_PLACES = [PLACE[name] for name in OWN_COLUMNS]


@dataclass(frozen=True)
class PeerEvidence:
    """Evidence of a run that other runs give, by column.

    `seconds` are those a segment; `shares` are of compute lost, one of whichever rank arrived last or one of each rank.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float | Mapping[int, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Segments:
    """Segments of one run: `values` has shape (n_segments, len(COLUMNS)), seconds or counts, NaN = not recorded.

    The other fields are those of `OwnSegments`; `of_ranks` has shape (n_ranks, len(COLUMNS)), `peers` that of `values`
    or, of condensed segments, no rows.
    """

    run_id: str
    ranks: int
    values: Floats
    culprits: Floats
    peers: Floats
    work: Mapping[int, float] = field(default_factory=dict)
    of_ranks: Floats = field(default_factory=lambda: np.empty((0, len(COLUMNS))))
    count: int = 0
    steps: Floats = field(default_factory=lambda: np.empty(0))
    behind: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def time(self) -> float:
        """Mean time of a segment in seconds: the sum of its phases."""
        return float(self.values[:, : len(PHASES)].sum(axis=1).mean())

    @property
    def means(self) -> Floats:
        """Mean of every column over the segments, shape (len(COLUMNS),)."""
        return np.asarray(self.values.mean(axis=0))

    def without(self, column: str) -> "Segments":
        """Return the same segments with nothing in one column."""
        place = COLUMNS.index(column)
        values, of_ranks = self.values.copy(), self.of_ranks.copy()
        values[:, place], of_ranks[:, place] = 0.0, 0.0
        return replace(self, values=values, of_ranks=of_ranks)

    @property
    def numbers(self) -> list[int]:
        """Numbers of the ranks, in the order of `of_ranks`."""
        return sorted(self.work) or list(range(self.ranks))

    def signs(self, rank: int) -> Floats:
        """Return 1 where this rank arrived last, and else 0, or of two ranks -1, shape (n_segments,)."""
        return np.where(self.culprits == rank, 1.0, -1.0 if self.ranks == 2 else 0.0)

    def differences(self, rank: int) -> Floats:
        """Return by how much the rank exceeds its peers in each segment, shape as `values`.

        Where another of many ranks arrived last, it is 0. The fabric and its evidence belong to all ranks: 0, too.
        """
        differences = (self.values - self.peers) * self.signs(rank)[:, None]
        differences[:, [COLUMNS.index(name) for name in OF_ALL_RANKS]] = 0.0
        return np.asarray(differences)

    def contrasts(self) -> Floats:
        """Return by how much each rank exceeds the median of the others, shape (n_ranks, len(COLUMNS)).

        Ranks of one run share its machine's pace, so differences between them do not drift with it. The fabric and its
        evidence belong to all ranks: they differ by nothing. Evidence of the last rank counts whole.
        """
        differences = self.of_ranks - _medians_of_others(self.of_ranks)
        differences[:, [COLUMNS.index(name) for name in OF_ALL_RANKS]] = 0.0
        of_last = [COLUMNS.index(name) for name in OF_LAST_RANK]
        differences[:, of_last] = self.of_ranks[:, of_last]
        return differences


def segments_of(own: OwnSegments, evidence: PeerEvidence) -> Segments:
    """Return the run's segments with both kinds of evidence; columns that neither gives are NaN."""
    of_last, of_ranks = _lost(own, evidence)
    nothing = dict.fromkeys(evidence.shares, 0.0 if len(own.of_ranks) else np.nan)
    return Segments(
        own.run_id,
        len(own.work),
        values=_widened(own.values, {**evidence.seconds, **of_last}),
        culprits=own.culprits,
        peers=_widened(own.peers, {**evidence.seconds, **nothing}),
        work=own.work,
        of_ranks=_widened(own.of_ranks, {**evidence.seconds, **of_ranks}),
        count=own.count,
        steps=own.steps,
        behind=own.behind,
    )


def _lost(own: OwnSegments, evidence: PeerEvidence) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return by column the compute lost in each segment, and by each rank in the mean, seconds.

    A share of each rank is one of its own compute; a share of whichever rank came last counts for a rank while it did.
    """
    of_last, of_ranks = {}, {}
    came_last = np.array(sorted(own.work))[:, None] == own.culprits
    for column, share in evidence.shares.items():
        if isinstance(share, Mapping):
            of_last[column] = own.values[:, COMPUTE] * [share[int(rank)] for rank in own.culprits]
            of_ranks[column] = own.of_ranks[:, COMPUTE] * [*share.values()][: len(own.of_ranks)]
        else:
            of_last[column] = own.values[:, COMPUTE] * share
            of_ranks[column] = (came_last @ of_last[column] / len(own.values))[: len(own.of_ranks)]
    return of_last, of_ranks


def _widened(own: Floats, others: Mapping[str, Floats | float]) -> Floats:
    """Return OWN_COLUMNS and the others in the order of COLUMNS, shape (n_rows, len(COLUMNS)); NaN where missing."""
    matrix = np.full((len(own), len(COLUMNS)), np.nan)
    matrix[:, OWN_PLACES] = own
    for name, values in others.items():
        matrix[:, PLACE[name]] = values
    return matrix


def _medians_of_others(means: Floats) -> Floats:
    """Return the median over the other rows for each row, of the shape of `means`; of many rows over all."""
    if len(means) > MANY_RANKS:
        return np.tile(np.median(means, axis=0), (len(means), 1))
    if len(means) == 2:
        return means[::-1]
    others = [np.median(np.delete(means, rank, axis=0), axis=0) for rank in range(len(means))]
    return np.array(others).reshape(means.shape)
