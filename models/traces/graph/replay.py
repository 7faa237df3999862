"""The replay of a graph with other durations and lags, of several changes in one pass.

In a run of activities e = max(x, previous e + lag) + d, with x the latest of what else each waits for. With the sums
S = cumsum(lag + d) that is e = S + cummax(x + d - S), so that a run takes no loop. Whole nanoseconds stay exact.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from crosswind.data.traces.trace import Flags, Integers
from crosswind.models.traces.graph.graph import Floats, Graph, Works
from crosswind.models.traces.graph.runs import BLOCK

Scale: TypeAlias = Callable[[Integers, Works], Floats]


def replayed(graph: Graph, scales: Sequence[Scale]) -> Floats:
    """Return the ends of activities, (n, n_scales) ns, with other durations and lags.

    A scale takes positions of activities, (k,), and classes of their durations or of the lags before them, (k,), and
    returns their factors, (k,).
    """
    ends = np.zeros((len(graph.activities) + 1, len(scales)))  # the last is the begin of the run
    for first in range(0, len(graph.activities), BLOCK):
        rows = graph.runs.order[first : first + BLOCK]
        edges = graph.runs.edges(first, first + len(rows))
        _replay(graph, rows, edges, _times(graph, rows, graph.runs.goes_on[first : first + BLOCK], scales), ends=ends)
    return ends[:-1]


def _replay(
    graph: Graph, rows: Integers, edges: Sequence[int], times: tuple[Floats, Floats, Floats], *, ends: Floats
) -> None:
    """Set the ends of some activities, run by run."""
    (lags, rest, sums), before = times, np.ascontiguousarray(graph.activities.before[rows].T)
    for first, last in pairwise(edges):
        latest = (ends.take(before[:, first:last], axis=0) + lags[:, first:last]).max(axis=0)
        latest += rest[first:last]
        ends[rows[first:last]] = np.maximum.accumulate(latest, axis=0) + sums[first:last]


def _times(graph: Graph, rows: Integers, goes_on: Flags, scales: Sequence[Scale]) -> tuple[Floats, Floats, Floats]:
    """Return lags by way, (WAYS, k, n_scales), without those within runs, which are in the sums; d - S; and S."""
    activities, place, binding = graph.activities, np.arange(len(rows)), graph.binding[rows]
    lag, within = graph.lag_ns(rows), np.flatnonzero(goes_on)
    durations = _scaled(activities.duration_ns[rows], activities.work[rows], rows, scales)
    lags = np.repeat(lag.T[:, :, None].astype(np.float64), len(scales), axis=2)
    lags[binding, place] = _scaled(lag[place, binding], activities.lag_work[rows, binding], rows, scales)
    follows, way = np.zeros_like(durations), graph.way[rows[within]]
    follows[within], lags[way, within] = lags[way, within], -np.inf
    sums = np.cumsum(follows + durations, axis=0)
    return lags, durations - sums, sums


def _scaled(times: Integers, works: Works, rows: Integers, scales: Sequence[Scale]) -> Floats:
    """Return times, (k, n_scales); clocks that disagree, which make them negative, are not scaled."""
    factors = np.stack([scale(rows, works) for scale in scales], axis=1)
    return np.where((times > 0)[:, None], times[:, None] * factors, times[:, None])
