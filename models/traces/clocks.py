"""The clocks of ranks, laid over each other by the ends of what they do together.

A collective ends at about one time on all its ranks. The median of the differences of ends is robust against single
ones that do not; where ranks share no collective, their marked steps stand in. Ranks of one file have one clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind.data.traces.trace import Integers, RankTrace
from crosswind.models.traces.collectives import Collectives, collectives
from crosswind.models.traces.ranks import ranks_of, text_of
from crosswind.models.traces.steps import steps


@dataclass(frozen=True)
class Clocks:
    """Nanoseconds to add to each rank's times, (n_ranks,), so that all are on the clock of the first rank."""

    ranks: tuple[int, ...]
    offset_ns: Integers
    residual_ns: NDArray[np.float64]  # median distance of a rank's ends from the others' after that; NaN if unknown
    basis: str  # "ends of collectives", "ends of steps", "one recording" (of all ranks, in one file), or "none"
    notes: tuple[str, ...] = ()


def clocks(traces: Sequence[RankTrace], matched: Collectives | None = None) -> Clocks:
    """Return the offsets of the ranks' clocks. Raises: InvalidInputError as `ranks_of`."""
    if len({trace.source for trace in traces}) == 1 and traces[0].source and len(traces) > 1:
        return _of(ranks_of(traces), np.zeros((1, len(traces))), "one recording")
    matched = collectives(traces) if matched is None else matched
    if (matched.is_in.sum(axis=1) > 1).any():
        start = matched.end_ns[matched.is_in].min()  # a double holds no nanoseconds since 1970
        return _of(matched.ranks, np.where(matched.is_in, matched.end_ns - start, np.nan), "ends of collectives")
    ends = [steps(trace).end_ns for trace in traces]
    if len(traces) > 1 and all(len(one) for one in ends):
        return _of(ranks_of(traces), _table(ends), "ends of steps")
    return _of(ranks_of(traces), np.full((0, len(traces)), np.nan), "none")


def aligned(traces: Sequence[RankTrace], offsets: Clocks) -> list[RankTrace]:
    """Return the traces on one clock."""
    return [trace.moved(by) for trace, by in zip(traces, offsets.offset_ns.tolist(), strict=True)]


def _table(ends: Sequence[Integers]) -> NDArray[np.float64]:
    """Return the k-th ends of ranks, (n_steps, n_ranks), from the first one on; NaN where a rank has fewer."""
    start = min(int(one[0]) for one in ends)
    table = np.full((max(len(one) for one in ends), len(ends)), np.nan)
    for column, one in enumerate(ends):
        table[: len(one), column] = one - start
    return table


def _of(ranks: tuple[int, ...], ends: NDArray[np.float64], basis: str) -> Clocks:
    """Return clocks from the ends of (n_events, n_ranks), NaN where a rank is not in one; from rank to rank."""
    offset = np.full(len(ranks), np.nan)
    offset[0] = 0.0
    while (rank := _next(ends, offset)) is not None:
        differences = _common(ends + offset, np.isfinite(offset)) - ends[:, rank]
        offset[rank] = np.nanmedian(differences)
    lost = [rank for rank, one in zip(ranks, offset, strict=True) if np.isnan(one)]
    notes = (f"{text_of(lost)}: nothing is shared with {text_of(ranks[:1])}, so the clock is taken as equal",)
    offset = np.nan_to_num(offset)
    offsets: Integers = np.rint(offset).astype(np.int64)
    return Clocks(ranks, offsets, _residual(ends + offset), basis, notes if lost else ())


def _next(ends: NDArray[np.float64], offset: NDArray[np.float64]) -> int | None:
    """Return the rank without an offset that shares most with those that have one; None if no rank does."""
    is_in, has = np.isfinite(ends), np.isfinite(offset)
    shared = (is_in & is_in[:, has].any(axis=1, keepdims=True)).sum(axis=0)
    shared[has] = 0
    return int(np.argmax(shared)) if shared.max(initial=0) else None


def _common(ends: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the median end of each event over the chosen ranks, (n_events,); NaN if none is in it."""
    medians = np.full(len(ends), np.nan)
    some = np.isfinite(ends[:, chosen]).any(axis=1)
    medians[some] = np.nanmedian(ends[some][:, chosen], axis=1)
    return medians


def _residual(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    shared = ends[np.isfinite(ends).sum(axis=1) > 1]
    distances = np.abs(shared - _common(shared, np.ones(ends.shape[1], bool))[:, None])
    residual = np.full(ends.shape[1], np.nan)
    some = np.isfinite(distances).any(axis=0)
    residual[some] = np.nanmedian(distances[:, some], axis=0)
    return residual
