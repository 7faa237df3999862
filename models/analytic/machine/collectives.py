"""Times of collective operations, by algorithm.

Sources: Thakur, Rabenseifner, Gropp 2005, "Optimization of collective communication operations in MPICH" (ring, trees,
scatter + all-gather broadcast); Patarasuk and Yuan 2009 (the ring's bandwidth is optimal); Sanders, Speck, Traeff 2009
(two trees at once use all links). Bytes are those that one rank holds before a reduction or after a gathering.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from crosswind.models.analytic.checks import require_count, require_not_negative
from crosswind.models.analytic.machine.links import Link


@dataclass(frozen=True)
class Group:
    """Ranks that communicate; those of one node have neighbouring numbers.

    `between` is the network connection of a whole node; `sharers` says how many such groups use it at once.
    """

    ranks: int
    ranks_a_node: int  # of this group
    inside: Link
    between: Link
    sharers: int = 1

    def __post_init__(self) -> None:
        require_count(ranks=self.ranks, ranks_a_node=self.ranks_a_node, sharers=self.sharers)

    @property
    def nodes(self) -> int:
        """The number of nodes of its ranks."""
        return math.ceil(self.ranks / self.ranks_a_node)

    @cached_property
    def slowest(self) -> Link:
        """The link that a ring through all ranks waits for."""
        if self.nodes == 1:
            return self.inside
        network = self.between.shared_by(self.sharers)
        return Link(
            max(self.inside.alpha_seconds, network.alpha_seconds),
            min(self.inside.bytes_per_second, network.bytes_per_second),
        )


def all_gather(n_bytes: float, group: Group) -> float:
    """Half a ring: (p - 1) alpha + (p - 1)/p n/beta, in seconds."""
    require_not_negative(n_bytes=n_bytes)
    p, link = group.ranks, group.slowest
    return (p - 1) * link.alpha_seconds + (p - 1) / p * n_bytes / link.bytes_per_second


def reduce_scatter(n_bytes: float, group: Group) -> float:
    """The other half of the ring: the same seconds as an all-gather, without the additions."""
    return all_gather(n_bytes, group)


def ring_all_reduce(n_bytes: float, group: Group) -> float:
    """A ring: 2 (p - 1) alpha + 2 (p - 1)/p n/beta, in seconds."""
    return reduce_scatter(n_bytes, group) + all_gather(n_bytes, group)


def tree_all_reduce(n_bytes: float, group: Group) -> float:
    """Double binary tree, pipelined: 2 log2(p) alpha + 2 n/beta, in seconds."""
    require_not_negative(n_bytes=n_bytes)
    if group.ranks == 1:
        return 0.0
    link = group.slowest
    return 2 * math.log2(group.ranks) * link.alpha_seconds + 2 * n_bytes / link.bytes_per_second


def hierarchical_all_reduce(n_bytes: float, group: Group) -> float:
    """Reduce-scatter inside each node, rings between nodes over each rank's part, all-gather inside, in seconds.

    The r rings between nodes carry n/r bytes each over one connection: together 2 (N - 1)/N n/beta.
    """
    if group.nodes == 1:
        return ring_all_reduce(n_bytes, group)
    inner = Group(group.ranks_a_node, group.ranks_a_node, group.inside, group.inside)
    network = group.between.shared_by(group.sharers)
    outer = Group(group.nodes, 1, network, network)
    return reduce_scatter(n_bytes, inner) + ring_all_reduce(n_bytes, outer) + all_gather(n_bytes, inner)


def all_to_all(n_bytes: float, group: Group) -> float:
    """Pairwise: (p - 1) alpha, and the slower of the bytes within the node and of those that leave it, in seconds.

    n_bytes are all bytes that one rank sends, its own part included; r ranks of a node share its connection.
    """
    require_not_negative(n_bytes=n_bytes)
    p, r = group.ranks, min(group.ranks, group.ranks_a_node)
    stays = n_bytes * (r - 1) / p / group.inside.bytes_per_second
    leaves = r * n_bytes * (p - r) / p / group.between.shared_by(group.sharers).bytes_per_second
    return (p - 1) * group.slowest.alpha_seconds + max(stays, leaves)


def broadcast(n_bytes: float, group: Group) -> float:
    """The better of a binomial tree and scatter + all-gather (van de Geijn), in seconds.

    ceil(log2 p) (alpha + n/beta), or (ceil(log2 p) + p - 1) alpha + 2 (p - 1)/p n/beta.
    """
    require_not_negative(n_bytes=n_bytes)
    p, link = group.ranks, group.slowest
    rounds = math.ceil(math.log2(p))
    scattered = (rounds + p - 1) * link.alpha_seconds + 2 * (p - 1) / p * n_bytes / link.bytes_per_second
    return min(rounds * link.seconds(n_bytes), scattered)


ALL_REDUCES: Mapping[str, Callable[[float, Group], float]] = {
    "ring": ring_all_reduce,
    "tree": tree_all_reduce,
    "hierarchical": hierarchical_all_reduce,
}


@dataclass(frozen=True)
class Choice:
    """An algorithm and its seconds."""

    algorithm: str
    seconds: float


def best_all_reduce(n_bytes: float, group: Group) -> Choice:
    """The fastest algorithm for this size and group, as libraries choose; the first of equals."""
    timed = [Choice(name, seconds(n_bytes, group)) for name, seconds in ALL_REDUCES.items()]
    return min(timed, key=lambda choice: choice.seconds)
