"""Neighbours: the truth about another user's job on the nodes of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.ingest.lab.casting import Part
from crosswind.ingest.lab.injection import Truth
from crosswind.ingest.lab.workers.watch import Trained

KIND, UNIT = "neighbour_job", "ranks a node"  # in the truth, next to the injectors' kinds


@dataclass(frozen=True)
class NodeInterval:
    """One rank on its node, from when to when in ns UTC."""

    node: str
    rank: int
    began_ns: int
    ended_ns: int


def node_intervals(part: Part, trained: Sequence[Trained]) -> list[NodeInterval]:
    """Return the nodes and times of a job's ranks."""
    return [
        NodeInterval(worker.post.node, order.rank, span.began_ns, span.ended_ns)
        for (worker, order), span in zip(part.ranks, trained, strict=True)
    ]


def neighbour_truths(own: Sequence[NodeInterval], neighbours: Sequence[NodeInterval]) -> list[Truth]:
    """Return the neighbour's job for each rank of the run that had it on its node, while both were there."""
    met = [
        (mine, max(mine.began_ns, other.began_ns), min(mine.ended_ns, other.ended_ns))
        for mine in own
        for other in neighbours
        if mine.node == other.node
    ]
    return [
        Truth(KIND, 1.0, UNIT, mine.node, mine.rank, began_ns, ended_ns)
        for mine, began_ns, ended_ns in met
        if began_ns < ended_ns
    ]
