"""Points at which collectives meet: the last arrival is the begin of the transfer for all its ranks.

A rank that arrives when another has left already did not hold that one up (a broadcast's root need not wait).
"""

from collections.abc import Sequence

import numpy as np

from crosswind.data.traces.trace import NONE, Codes, Flags, Integers
from crosswind.models.traces.graph.draft import Nodes, depend, joined, nodes
from crosswind.models.traces.graph.graph import Work

TOLERANCE_NS = 10_000
RESIDUALS = 4.0  # of clocks, by which an arrival may seem too late


def together(drafts: list[Nodes], collectives: int, residual_ns: float) -> tuple[Nodes, Codes]:
    """Return the activities of all ranks with the points where they meet, and each one's column of ranks.

    The drafts are used up.
    """
    shifts = np.cumsum([0, *map(len, drafts)])
    column = np.repeat(np.arange(len(drafts), dtype=np.int32), [len(draft) for draft in drafts])
    ranks = max(1, len(drafts))
    arrival, leaving = _tables(drafts, shifts, collectives)
    times = np.concatenate([draft.begin_ns for draft in drafts])
    met, parts = _meetings(arrival, leaving, times, TOLERANCE_NS + RESIDUALS * residual_ns)
    point = np.flatnonzero(met)  # rows of (n_collectives, n_ranks), by collective
    begins = np.maximum.accumulate(np.where(met.reshape(arrival.shape), times[arrival], parts), axis=1).ravel()[point]
    for draft, shift in zip(drafts, shifts[:-1].tolist(), strict=True):
        draft.before[draft.before != NONE] += shift
    whole, _ = joined(*drafts, nodes(begins, np.zeros_like(begins), Work.NOTHING))
    drafts.clear()
    _connect(whole, arrival, leaving, point)
    return whole, np.concatenate([column, (point % ranks).astype(np.int32)])


def _tables(drafts: Sequence[Nodes], shifts: Integers, collectives: int) -> tuple[Integers, Integers]:
    """Return the activities that arrive at and leave each collective, (n_collectives, n_ranks) each; NONE."""
    arrival, leaving = (np.full((collectives, len(drafts)), NONE, np.int64) for _ in range(2))
    for column, (draft, shift) in enumerate(zip(drafts, shifts, strict=False)):
        for table, numbers in ((arrival, draft.arrives), (leaving, draft.leaves)):
            rows = np.flatnonzero(numbers != NONE)
            table[numbers[rows], column] = rows + shift
    is_met = (arrival != NONE).any(axis=1)
    return arrival[is_met], leaving[is_met]


def _meetings(arrival: Integers, leaving: Integers, times: Integers, tolerance: float) -> tuple[Flags, int]:
    """Return which arrivals, (n_collectives * n_ranks,), hold up the others; and a time before all."""
    is_in = arrival != NONE
    first_left = np.where(is_in, times[leaving], np.iinfo(np.int64).max).min(axis=1, initial=np.iinfo(np.int64).max)
    holds = is_in & (times[arrival] <= (first_left + tolerance)[:, None])
    return holds.ravel(), int(times.min()) if len(times) else 0


def _connect(whole: Nodes, arrival: Integers, leaving: Integers, point: Integers) -> None:
    """Join arrivals one after the other at points, the last of which all leavings follow."""
    ranks = max(1, arrival.shape[1])
    first_row = len(whole) - len(point)
    rows, collective = first_row + np.arange(len(point)), point // ranks
    depend(whole, 0, rows, arrival.ravel()[point], work=Work.TRANSFER)
    same = collective[1:] == collective[:-1]
    depend(whole, 1, rows[1:][same], rows[:-1][same], work=Work.TRANSFER)
    last = first_row + np.searchsorted(collective, np.arange(len(arrival)), side="right") - 1
    for column in range(ranks):
        is_in = leaving[:, column] != NONE
        depend(whole, 0, leaving[is_in, column], last[is_in], work=Work.TRANSFER)
        late = is_in.copy()
        late[collective[point % ranks == column]] = False
        depend(whole, 1, leaving[late, column], arrival[late, column], work=Work.TRANSFER)
