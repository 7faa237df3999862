"""An order of activities in which each comes after what it depends on."""

import numpy as np

from crosswind.data.traces.trace import NONE, Codes, Integers

ROOM = 1 << 10  # between two nanoseconds, for activities of one time
ROUNDS = 1000


def in_order(begins: Integers, before: Codes) -> tuple[Integers, int]:
    """Return such an order, positions (n,), close to that of the begins.

    If some wait for each other in a ring, it is that of the begins, and the dependencies against it are taken out of
    `before`, (n, ways): also return how many.
    """
    key = (begins - (begins.min() if len(begins) else 0)) * ROOM
    for _ in range(ROUNDS):
        if not sum(_moved(key, earlier) for earlier in before.T):
            return np.argsort(key, kind="stable"), 0
    start = np.argsort(begins, kind="stable")
    place = np.empty_like(start)
    place[start] = np.arange(len(start))
    against = (before != NONE) & (place[before] >= place[:, None])
    before[against] = NONE
    return start, int(against.sum())


def _moved(key: Integers, earlier: Codes) -> bool:
    """Move what comes before what it depends on behind it, by one dependency of each. Return whether any was."""
    wrong = np.flatnonzero((earlier != NONE) & (key <= key[earlier]))
    key[wrong] = np.maximum(key[wrong], key[earlier[wrong]] + 1)
    return bool(len(wrong))
