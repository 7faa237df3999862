"""Checks that traces are of one run, a rank each: contradictions are errors, oddities are noted in the trace."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import Integers, Kind, RankTrace

RANK_IN_NAME = re.compile(r"rank[-_]?(\d{1,7})(?!\d)|_(\d{1,7})\.pt\.trace", re.IGNORECASE)
OTHER_UNIT = 300.0  # spans of ranks that differ by so much are rather in different units than of different lengths


@dataclass
class OneRun:
    """The ranks seen so far."""

    by_rank: dict[int, RankTrace] = field(default_factory=dict)  # without events

    def of(self, traces: Iterable[RankTrace]) -> Iterator[RankTrace]:
        """Yield the traces with a rank each, and notes. Raises: InvalidInputError when they are not of one run."""
        yield from map(self._added, traces)

    def _added(self, trace: RankTrace) -> RankTrace:
        rank, notes = self._rank(trace)
        trace = _noted(replace(trace, rank=rank), notes)
        if other := self.by_rank.get(rank):
            raise InvalidInputError(
                f"{trace.source}: rank {rank} again, as in {other.source}; expected one trace of each rank of one run"
            )
        for first in list(self.by_rank.values())[:1]:
            _check_run(trace, first)
            trace = _noted(trace, _oddities(trace, first))
        if not len(trace.events.of(Kind.STEP)):
            trace = _noted(trace, ["no steps are marked: the whole trace counts as one"])
        self.by_rank[rank] = replace(trace, events=trace.events.where(_edges(trace)))
        return trace

    def _rank(self, trace: RankTrace) -> tuple[int, list[str]]:
        """Return a trace's rank, and a note where the trace does not state it."""
        if trace.rank is not None:
            _check_rank(trace, trace.rank)
            return trace.rank, []
        named = rank_in_name(Path(trace.source).name)
        if named is not None and named not in self.by_rank:
            return named, [f"rank {named} is read from the file's name"]
        position = next(number for number in range(len(self.by_rank) + 1) if number not in self.by_rank)
        return position, [f"no rank is stated: {position} by its position among the files"]


def _check_rank(trace: RankTrace, rank: int) -> None:
    size = trace.world_size
    if size is not None and rank >= size:
        raise InvalidInputError(f"{trace.source}: rank {rank} of {size}; expected one from 0 to {size - 1}")


def rank_in_name(name: str) -> int | None:
    """Return the rank that a file's name states (rank3, rank_3, rank-3, _3.pt.trace), or None."""
    match = RANK_IN_NAME.search(name)
    return int(match.group(1) or match.group(2)) if match else None


def _noted(trace: RankTrace, notes: list[str]) -> RankTrace:
    return replace(trace, notes=(*trace.notes, *notes)) if notes else trace


def _edges(trace: RankTrace) -> Integers:
    """Return the positions of the events at which the trace's span begins and ends."""
    events = trace.events
    begin, end = trace.span
    return np.flatnonzero((events.begin_ns == begin) | (events.end_ns == end))


def _check_run(trace: RankTrace, first: RankTrace) -> None:
    for name, ours, theirs in (
        ("world size", trace.world_size, first.world_size),
        ("run", trace.run or None, first.run or None),
        ("format", trace.format, first.format),
    ):
        if ours is not None and theirs is not None and ours != theirs:
            raise InvalidInputError(
                f"{trace.source}: {name} {ours}, but {theirs} in {first.source}; expected traces of one run"
            )
    _check_groups(trace, first)


def _check_groups(trace: RankTrace, first: RankTrace) -> None:
    members = {group.name: group.ranks for group in first.groups if group.ranks}
    for group in trace.groups:
        theirs = members.get(group.name, ())
        if group.ranks and theirs and group.ranks != theirs and set(group.ranks) & set(theirs):
            raise InvalidInputError(
                f"{trace.source}: group {group.name!r} has ranks {_short(group.ranks)}, but {_short(theirs)} in "
                f"{first.source}; expected traces of one run"
            )


def _short(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks[:8])) + (f" ... ({len(ranks)})" if len(ranks) > 8 else "")


def _oddities(trace: RankTrace, first: RankTrace) -> list[str]:
    (begin, end), (their_begin, their_end) = trace.span, first.span
    length, theirs = end - begin, their_end - their_begin
    notes = []
    if begin > their_end or end < their_begin:
        notes.append(
            f"its times do not overlap those of {first.source}: another clock, or another run; "
            "ranks are compared by collectives, not by times"
        )
    if length and theirs and not 1 / OTHER_UNIT < length / theirs < OTHER_UNIT:
        notes.append(
            f"it spans {length / 1e9:g} s, and {first.source} {theirs / 1e9:g} s: are the times of one in other units?"
        )
    if trace.resolution_ns != first.resolution_ns:
        notes.append(
            f"its times are in steps of {trace.resolution_ns} ns, those of {first.source} in steps of "
            f"{first.resolution_ns} ns"
        )
    return notes
