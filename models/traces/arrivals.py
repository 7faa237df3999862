"""The order in which ranks arrive at collectives, and the waits that the last one causes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosswind.data.traces.trace import Flags, Integers, RankTrace
from crosswind.models.traces.clocks import Clocks, clocks
from crosswind.models.traces.collectives import Collectives, collectives
from crosswind.models.traces.occupancy import union_ns


@dataclass(frozen=True)
class Arrivals:
    """Arrivals at the collectives in which two ranks or more are traced."""

    ranks: tuple[int, ...]
    begin_ns: Integers  # (n_collectives, n_ranks), on each rank's own clock
    late_ns: Integers  # (n_collectives, n_ranks), after the first to arrive, on aligned clocks; 0 if not in it
    is_in: Flags  # (n_collectives, n_ranks)
    last: Integers  # (n_collectives,), index into ranks
    wait_ns: Integers  # (n_collectives, n_ranks)
    transfer_ns: Integers  # (n_collectives,)
    notes: tuple[str, ...] = ()

    @property
    def times_last(self) -> Integers:
        """Return how often each rank came last, (n_ranks,)."""
        return np.bincount(self.last, minlength=len(self.ranks))

    @property
    def waited_ns(self) -> Integers:
        """Return how long each rank waited, (n_ranks,); an instant counts once."""
        return np.asarray([union_ns(self._waits(place)) for place in range(len(self.ranks))])

    @cached_property
    def waits_ns(self) -> Integers:
        """Return how long each rank waited for each that came last, (n_ranks, n_ranks); an instant counts once."""
        return np.asarray([self._waited_for(place) for place in range(len(self.ranks))])

    @property
    def caused_ns(self) -> Integers:
        """Return how long the others waited for each rank, as it came last, (n_ranks,)."""
        return np.asarray(self.waits_ns.sum(axis=0))

    @property
    def slowest(self) -> int | None:
        """Return the rank for which the others waited longest; None if nobody waited."""
        caused = self.caused_ns
        return self.ranks[int(np.argmax(caused))] if caused.any() else None

    def _waits(self, place: int, late: int | None = None) -> tuple[Integers, Integers]:
        """Return begins and ends of a rank's waits, for one that came last if that is given."""
        is_wait = self.wait_ns[:, place] > 0
        rows = is_wait if late is None else is_wait & (self.last == late)
        return self.begin_ns[rows, place], self.begin_ns[rows, place] + self.wait_ns[rows, place]

    def _waited_for(self, place: int) -> list[int]:
        begins, ends = self._waits(place)
        order = np.argsort(begins)
        if (ends[order][:-1] <= begins[order][1:]).all():  # one wait at a time, as most have it
            return [int(ns) for ns in np.bincount(self.last, self.wait_ns[:, place], len(self.ranks))]
        return [union_ns(self._waits(place, late)) for late in range(len(self.ranks))]


def arrivals(
    traces: Sequence[RankTrace], matched: Collectives | None = None, offsets: Clocks | None = None
) -> Arrivals:
    """Return the arrivals of ranks. Raises: InvalidInputError as `ranks_of`."""
    matched = collectives(traces) if matched is None else matched
    offsets = clocks(traces, matched) if offsets is None else offsets
    chosen = matched.is_in.sum(axis=1) > 1
    is_in, begins = matched.is_in[chosen], offsets.on_first(matched.begin_ns)[chosen]
    limits = np.iinfo(np.int64)
    first = np.where(is_in, begins, limits.max).min(axis=1, initial=limits.max)
    return Arrivals(
        matched.ranks,
        matched.begin_ns[chosen],
        np.where(is_in, begins - first[:, None], 0),
        is_in,
        np.argmax(np.where(is_in, begins, limits.min), axis=1),
        matched.wait_ns[chosen],
        matched.transfer_ns[chosen],
        (*matched.notes, *offsets.notes),
    )
