"""Facts that set a run apart from most of the other runs of its cohort."""

from collections import Counter
from collections.abc import Sequence

from crosswind.dashboards.pages.runs.differences import NOTHING, FactDifference, fact_differences
from crosswind.data.schema.run import Run

LEAST_PEERS = 3  # fewer are no habit
MOST_NAMED = 8
NODES = "nodes"


def unusual(run: Run, peers: Sequence[Run]) -> tuple[FactDifference, ...]:
    """Return what differs, nodes last; nothing with fewer than three other runs."""
    if len(peers) < LEAST_PEERS:
        return ()
    return (*_facts(run, peers), *_nodes(run, peers))


def _facts(run: Run, peers: Sequence[Run]) -> list[FactDifference]:
    differing, _ = fact_differences(run, peers)
    return [one for one in differing if one.name != NODES and 2 * one.shared < len(peers)]


def _nodes(run: Run, peers: Sequence[Run]) -> list[FactDifference]:
    """Return nodes that most others did not have, and those that most had, where there are usual ones."""
    times = Counter(node for peer in peers for node in set(peer.nodes))
    usual = {node for node, runs in times.items() if 2 * runs > len(peers)}
    unusual = sorted(set(run.nodes) - usual, key=lambda node: (times[node], node))
    lacking = sorted(usual - set(run.nodes))
    if not run.nodes or not usual or not (unusual or lacking):
        return []
    return [FactDifference(NODES, _named(unusual), _named(lacking), max((times[node] for node in unusual), default=0))]


def _named(nodes: Sequence[str]) -> str:
    more = len(nodes) - MOST_NAMED
    return ", ".join(nodes[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "") if nodes else NOTHING
