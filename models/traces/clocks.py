"""The clocks of ranks, laid over each other by the ends of what they do together.

A collective ends at about one time on all its ranks. The median of the differences of ends is robust against single
ones that do not; where ranks share no collective, their marked steps stand in. Ranks of one file have one clock.
Clocks also run at rates of their own, by some parts in a million: where a capture is so long that the differences
surely grow or shrink, a line is laid through them (the median of the slopes of all pairs, after Theil and Sen).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crosswind.data.traces.trace import Events, Integers, RankTrace
from crosswind.models.traces.collectives import PAIR, Collectives, collectives
from crosswind.models.traces.drift import drift
from crosswind.models.traces.ranks import ranks_of, text_of
from crosswind.models.traces.steps import steps


@dataclass(frozen=True)
class Clocks:
    """Offsets of the ranks' clocks, (n_ranks,), to that of the first rank, and their rates where they drift."""

    ranks: tuple[int, ...]
    offset_ns: Integers  # to add at `pivot_ns`
    rate: NDArray[np.float64]  # by which that grows with the rank's time; 0 unless it surely does
    pivot_ns: Integers  # on the rank's own clock
    residual_ns: NDArray[np.float64]  # median distance of a rank's ends from the others' after that; NaN if unknown
    basis: str  # "ends of collectives", "ends of steps", "one recording" (of all ranks, in one file), or "none"
    notes: tuple[str, ...] = ()

    def on_first(self, times_ns: Integers) -> Integers:
        """Return times of the ranks, (..., n_ranks), on the clock of the first one."""
        if not self.rate.any():
            return times_ns + self.offset_ns
        drift: Integers = np.rint(self.rate * (times_ns - self.pivot_ns)).astype(np.int64)
        return times_ns + self.offset_ns + drift

    def of_rank(self, place: int) -> "Clocks":
        """Return the clock of one rank alone."""
        one = slice(place, place + 1)
        columns = self.offset_ns[one], self.rate[one], self.pivot_ns[one], self.residual_ns[one]
        return Clocks(self.ranks[one], *columns, self.basis)


def clocks(traces: Sequence[RankTrace], matched: Collectives | None = None) -> Clocks:
    """Return the offsets of the ranks' clocks. Raises: InvalidInputError as `ranks_of`."""
    if len({trace.source for trace in traces}) == 1 and traces[0].source and len(traces) > 1:
        return _of(ranks_of(traces), np.zeros((1, len(traces))), "one recording", 0)
    matched = collectives(traces) if matched is None else matched
    if (matched.is_in.sum(axis=1) > 1).any():
        start = int(matched.end_ns[matched.is_in].min())  # a double holds no nanoseconds since 1970
        ends = np.where(matched.is_in, matched.end_ns - start, np.nan)
        is_pair = np.array([basis == PAIR for basis in matched.basis], bool)
        alone = _of(matched.ranks, ends[~is_pair], "ends of collectives", start)
        return _of(matched.ranks, ends, "ends of collectives", start) if alone.notes and is_pair.any() else alone
    marked = [steps(trace).end_ns for trace in traces]
    if len(traces) > 1 and all(len(one) for one in marked):
        start = min(int(one[0]) for one in marked)
        return _of(ranks_of(traces), _table(marked, start), "ends of steps", start)
    return _of(ranks_of(traces), np.full((0, len(traces)), np.nan), "none", 0)


def aligned(traces: Sequence[RankTrace], offsets: Clocks) -> list[RankTrace]:
    """Return the traces on one clock."""
    return [on_first(trace, offsets.of_rank(place)) for place, trace in enumerate(traces)]


def on_first(trace: RankTrace, clock: Clocks) -> RankTrace:
    """Return one rank's trace on the clock of the first rank."""
    if not clock.rate.any():
        return trace.moved(int(clock.offset_ns[0]))
    begin, end = (clock.on_first(one[:, None])[:, 0] for one in (trace.events.begin_ns, trace.events.end_ns))
    columns = trace.events.columns | {"begin_ns": begin, "duration_ns": end - begin}
    return replace(trace, events=Events(**columns))


def _table(ends: Sequence[Integers], start: int) -> NDArray[np.float64]:
    """Return the k-th ends of ranks after a start, (n_steps, n_ranks); NaN where a rank has fewer."""
    table = np.full((max(len(one) for one in ends), len(ends)), np.nan)
    for column, one in enumerate(ends):
        table[: len(one), column] = one - start
    return table


def _of(ranks: tuple[int, ...], ends: NDArray[np.float64], basis: str, start: int) -> Clocks:
    """Return clocks from the ends of (n_events, n_ranks), NaN where a rank is not in one; from rank to rank.

    Ends are after `start`, ns.
    """
    offset, rate, pivot = np.full(len(ranks), np.nan), np.zeros(len(ranks)), np.zeros(len(ranks))
    offset[0] = 0.0
    while (rank := _next(ends, offset)) is not None:
        differences = _common(ends + offset + rate * (ends - pivot), np.isfinite(offset)) - ends[:, rank]
        rate[rank], pivot[rank] = drift(ends[:, rank], differences)
        offset[rank] = np.nanmedian(differences - rate[rank] * (ends[:, rank] - pivot[rank]))
    notes, offset = _notes(ranks, offset, rate), np.nan_to_num(offset)
    moved = ends + offset + rate * (ends - pivot)
    columns = np.rint(offset).astype(np.int64), rate, np.rint(pivot).astype(np.int64) + start
    return Clocks(ranks, *columns, _residual(moved), basis, notes)


def _notes(ranks: tuple[int, ...], offset: NDArray[np.float64], rate: NDArray[np.float64]) -> tuple[str, ...]:
    """Return a note on the ranks without an offset, NaN, and one on each whose clock drifts."""
    first = text_of(ranks[:1])
    lost = [rank for rank, one in zip(ranks, offset, strict=True) if np.isnan(one)]
    equal = f"{text_of(lost)}: nothing is shared with {first}, so the clock is taken as equal"
    drifting = (
        f"the clock of {text_of([rank])} drifts by {by * 1e6:.3g} parts in a million against that of {first}: its "
        "times are corrected for it"
        for rank, by in zip(ranks, rate.tolist(), strict=True)
        if by
    )
    return (*([equal] if lost else []), *drifting)


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
