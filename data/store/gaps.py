"""Gaps in the samples of a node."""

from collections.abc import Iterable

import numpy as np

from crosswind.data.lake.series import Ints
from crosswind.data.schema.answers.nodes import SampleGap
from crosswind.data.store.coverage import PATIENCE
from crosswind.data.store.fleet import AGENT
from crosswind.data.store.node_intervals import NodeInterval
from crosswind.data.store.store import Store

USUAL = 0.9  # quantile of the distances between sweeps
_SWEEPS = "select distinct ts_ns from agent where node = ? and ts_ns >= ? and ts_ns < ? order by ts_ns"


def gaps_of(store: Store, intervals: Iterable[NodeInterval], *, limit: int) -> tuple[SampleGap, ...]:
    """Return the longest times within intervals in which their nodes were not sampled, longest first.

    Nothing is said of an interval in which fewer than three sweeps were taken: it does not show how far apart they
    should be. Raises: MalformedError.
    """
    if AGENT not in store.lake.sets():
        return ()
    gaps = [gap for interval in intervals for gap in _gaps(_times(store, interval), interval)]
    return tuple(sorted(gaps, key=lambda gap: (-gap.seconds, gap.begin_ns))[:limit])


def _times(store: Store, interval: NodeInterval) -> Ints:
    span = (interval.begin_ns, interval.end_ns)
    return store.lake.frame(_SWEEPS, [interval.node, *span], within=span)["ts_ns"].to_numpy(np.int64)


def _gaps(times: Ints, interval: NodeInterval) -> list[SampleGap]:
    if len(times) <= 2:
        return []
    longest = int(np.quantile(np.diff(times), USUAL, method="lower")) * PATIENCE
    edges = np.concatenate([[interval.begin_ns], times, [interval.end_ns]]).astype(np.int64)
    places = np.flatnonzero(np.diff(edges) > longest)
    return [_gap(int(edges[place]), int(edges[place + 1])) for place in places.tolist()]


def _gap(begin_ns: int, end_ns: int) -> SampleGap:
    return SampleGap(begin_ns, end_ns, (end_ns - begin_ns) / 1e9)
