"""An order of activities in which each comes after what it depends on."""

import numpy as np

from crosswind.data.traces.trace import NONE, Integers

ROOM = 1 << 10  # between two nanoseconds, for activities of one time
ROUNDS = 1000


def in_order(begins: Integers, before: Integers) -> tuple[Integers, int]:
    """Return such an order, positions (n,), close to that of the begins.

    If some wait for each other in a ring, it is that of the begins, and the dependencies against it are taken out of
    `before`, (n, ways): also return how many.
    """
    rows, ways = np.nonzero(before != NONE)
    earlier = before[rows, ways]
    key = (begins - (begins.min() if len(begins) else 0)) * ROOM
    start = np.argsort(key, kind="stable")
    for _ in range(ROUNDS):
        wrong = key[rows] <= key[earlier]
        if not wrong.any():
            return np.argsort(key, kind="stable"), 0
        np.maximum.at(key, rows[wrong], key[earlier[wrong]] + 1)
    place = np.empty_like(start)
    place[start] = np.arange(len(start))
    against = place[earlier] >= place[rows]
    before[rows[against], ways[against]] = NONE
    return start, int(against.sum())
