"""The rank of each trace of a set, sums over such traces, and texts about sets of ranks."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import RankTrace


def ranks_of(traces: Sequence[RankTrace]) -> tuple[int, ...]:
    """Return the rank of each trace; where traces do not say, the lowest numbers that are free, in their order.

    Raises: InvalidInputError without traces, or when two are of one rank.
    """
    return numbered([trace.rank for trace in traces])


def numbered(stated: Sequence[int | None]) -> tuple[int, ...]:
    """Return the same of the ranks that traces state. Raises: InvalidInputError as `ranks_of`."""
    if not stated:
        raise InvalidInputError("no traces: expected one a rank")
    taken = [rank for rank in stated if rank is not None]
    repeated = sorted(rank for rank, count in Counter(taken).items() if count > 1)
    if repeated:
        raise InvalidInputError(f"traces: {text_of(repeated)} more than once; expected one trace a rank")
    free = iter(sorted(set(range(len(stated) + len(taken))) - set(taken)))
    return tuple(next(free) if rank is None else rank for rank in stated)


@dataclass
class RankSums:
    """Sums over the ranks that were added, one after the other; those who inherit have what is summed."""

    stated: list[int | None] = field(default_factory=list)  # by the traces, in the order in which they came

    @classmethod
    def of(cls, traces: Iterable[RankTrace]) -> Self:
        """Return the sums over traces, each of which may be freed once the next one is asked for."""
        sums = cls()
        for trace in traces:
            sums.add(trace)
        return sums

    def add(self, trace: RankTrace) -> None:
        """Add a rank."""
        self.stated.append(trace.rank)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Return the ranks of the traces. Raises: InvalidInputError as `ranks_of`."""
        return numbered(self.stated)


def text_of(ranks: Sequence[int]) -> str:
    """Return "rank 3" or "ranks 0-3, 7"."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    parts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(parts)}"


def alone_notes(traces: Sequence[RankTrace]) -> tuple[str, ...]:
    """Return a note if there is one trace, of a run of more ranks or of unknown ones."""
    if len(traces) != 1 or traces[0].world_size == 1:
        return ()
    of = f" of {traces[0].world_size}" if traces[0].world_size else ""
    return (f"one rank{of} only: waits for others cannot be seen",)


def absent_notes(traces: Sequence[RankTrace]) -> tuple[str, ...]:
    """Return a note if the run has more ranks than there are traces."""
    size = max((trace.world_size or 0 for trace in traces), default=0)
    return (f"{len(traces)} of {size} ranks are traced: results are over those",) if size > len(traces) else ()
