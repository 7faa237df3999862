"""The nesting of events on their threads: which one encloses which."""

from itertools import pairwise

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Integers


def parents(events: Events, rows: Integers | None = None) -> Integers:
    """Return the position of the innermost event that encloses each one on its thread, (n,); NONE at the top.

    With `rows`, only those events count, and positions are among them.
    """
    rows = np.arange(len(events)) if rows is None else rows
    order = np.argsort(events.place[rows], kind="stable")
    begins, ends = _apart(events, rows[order])
    depth = np.arange(len(begins)) - np.searchsorted(np.sort(ends), begins, side="right")
    parent: Integers = np.full(len(begins), NONE, np.int64)
    levels = _by_level(depth)
    for outer, inner in pairwise(levels):
        place = np.searchsorted(outer, inner) - 1
        candidate = outer[np.maximum(place, 0)]
        parent[inner] = np.where((place >= 0) & (ends[candidate] > begins[inner]), candidate, NONE)
    result: Integers = np.full(len(begins), NONE, np.int64)
    result[order] = np.where(parent == NONE, NONE, order[parent])
    return result


def roots(parent: Integers, is_root: np.ndarray) -> Integers:
    """Return of each event the nearest one of some, itself or an ancestor, (n,); NONE if there is none."""
    nearest = np.arange(len(parent))
    while True:
        rises = (nearest != NONE) & ~is_root[nearest]
        if not rises.any():
            return nearest
        nearest[rises] = parent[nearest[rises]]


def _apart(events: Events, rows: Integers) -> tuple[Integers, Integers]:
    """Return begins and ends of events, with those of each thread after those of the one before; none is empty."""
    begins = events.begin_ns[rows]
    if not len(rows):
        return begins, begins
    begins = begins - begins.min()
    ends = begins + np.maximum(events.duration_ns[rows], 1)
    shift = events.place[rows].astype(np.int64) * (int(ends.max()) + 1)
    return begins + shift, ends + shift


def _by_level(depth: Integers) -> list[Integers]:
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    return [order[first:last] for first, last in pairwise(bounds)]
