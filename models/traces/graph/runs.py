"""Runs of activities that follow one another, of which a replay takes each at once.

An activity goes on in the run of the one that it follows unless it depends on others besides that the run's begin does
not: a call that waits for the device begins a new run on its host, the work after a collective one on its stream.
"""

from array import array
from dataclasses import dataclass

import numpy as np

from crosswind.data.traces.trace import NONE, Codes, Flags, Integers

BLOCK = 1 << 14  # activities that are taken at once, at most, and are in memory as objects


@dataclass(frozen=True)
class Runs:
    """Activities run by run, each after all that it depends on."""

    order: Integers  # (n,), positions of activities
    goes_on: Flags  # (n,), by the order: whether it follows the one before it there, in one run

    def edges(self, first: int, last: int) -> list[int]:
        """Return where runs begin in a part of the order, counted from its first, and its length."""
        return [*np.flatnonzero(~self.goes_on[first:last]).tolist(), last - first]


def runs_of(before: Codes, way: Integers) -> Runs:
    """Return the runs of activities by their dependencies, (n, 3); each may go on after its one of some way, (n,)."""
    place = np.arange(len(before))
    follows = _first_alone(before[place, way])
    others = before.copy()
    others[place[follows != NONE], way[follows != NONE]] = NONE
    level, chain = _levels(follows, others)
    order = np.lexsort((chain, level))
    goes_on = ((follows != NONE) & (level == level[follows]))[order]
    goes_on[::BLOCK] = False
    return Runs(order, goes_on)


def _first_alone(follows: Codes) -> Codes:
    """Return the same with the first of several that follow one activity alone; NONE for the others."""
    of, first = np.unique(follows, return_index=True)
    alone = np.full_like(follows, NONE)
    alone[first[of != NONE]] = of[of != NONE]
    return alone


def _levels(follows: Codes, others: Codes) -> tuple[Integers, Integers]:
    """Return the level of each activity's run, over those of all others it waits for; and the first of its chain."""
    levels, chains = (array("q", bytes(8 * (len(follows) + 1))) for _ in range(2))
    levels[-1] = NONE
    for first in range(0, len(follows), BLOCK):
        rows = slice(first, first + BLOCK)
        columns = (follows[rows].tolist(), *others[rows].T.tolist())
        for row, (own, one, two, three) in enumerate(zip(*columns, strict=True), first):
            level = levels[own]
            if (other := levels[one]) >= level:
                level = other + 1
            if (other := levels[two]) >= level:
                level = other + 1
            if (other := levels[three]) >= level:
                level = other + 1
            levels[row], chains[row] = level, row if own == NONE else chains[own]
    return np.frombuffer(levels, np.int64)[:-1], np.frombuffer(chains, np.int64)[:-1]
