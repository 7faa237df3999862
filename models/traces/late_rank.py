"""The rank for which others wait longest: what its peers' work in its place would save, and how late it began."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.traces.trace import RankTrace
from crosswind.models.traces.clocks import Clocks
from crosswind.models.traces.graph.graph import Graph
from crosswind.models.traces.ranks import ranks_of
from crosswind.models.traces.what_if.causes import peers_of, rank_as_peers
from crosswind.models.traces.what_if.what_if import what_if


@dataclass(frozen=True)
class LateRank:
    """A rank, the share of the time that a replay with its peers' work saves, and its begin after the others'."""

    rank: int
    saved_share: float | None  # None without peers in its stage
    begins_after_ns: int  # the median of the other ranks' begins; negative if before


def late_rank(
    rank: int, traces: Sequence[RankTrace], *, graph: Graph, offsets: Clocks, stages: Mapping[int, int]
) -> LateRank:
    """Return the facts on a rank that others waited for; `stages` are those of all ranks, or none."""
    spans = np.array([trace.span[0] for trace in traces], np.int64)
    placed = zip(ranks_of(traces), offsets.on_first(spans).tolist(), traces, strict=True)
    begins = {one: begin for one, begin, trace in placed if len(trace.events)}
    others = [begin for one, begin in begins.items() if one != rank]
    after = begins[rank] - others[0] - int(np.median(np.array(others) - others[0]))
    return LateRank(rank, _saved_share(rank, graph, stages), after)


def _saved_share(rank: int, graph: Graph, stages: Mapping[int, int]) -> float | None:
    if not peers_of(graph, rank, stages or None):
        return None
    replay = what_if(graph, rank_as_peers(rank, stages or None))
    return 1 - replay.replayed_ns / replay.measured_ns if replay.measured_ns else 0.0
