"""Facts that set a run apart from most of the other runs of its cohort."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.data.schema.run import Run
from crosswind.models.explain.compare import recorded_facts

LEAST_PEERS = 3  # fewer are no habit
MOST_NAMED = 8
NODES, NONE = "nodes", "none"


@dataclass(frozen=True)
class Difference:
    """One thing that this run has otherwise than most of the cohort's other runs; `runs` of them have it as `usual`."""

    name: str
    here: str
    usual: str
    runs: int


def differences(run: Run, peers: Sequence[Run]) -> tuple[Difference, ...]:
    """Return what differs, nodes last; nothing with fewer than three other runs."""
    if len(peers) < LEAST_PEERS:
        return ()
    return (*_facts(run, peers), *_nodes(run, peers))


def _facts(run: Run, peers: Sequence[Run]) -> list[Difference]:
    own, others = recorded_facts(run), [recorded_facts(peer) for peer in peers]
    names = sorted({name for facts in (own, *others) for name in facts} - {NODES})
    usual = {name: Counter(facts.get(name, NONE) for facts in others).most_common(1)[0] for name in names}
    return [
        Difference(name, own.get(name, NONE), value, runs)
        for name, (value, runs) in usual.items()
        if 2 * runs > len(peers) and value != own.get(name, NONE)
    ]


def _nodes(run: Run, peers: Sequence[Run]) -> list[Difference]:
    """Return nodes that most others did not have, and those that most had, where there are usual ones."""
    times = Counter(node for peer in peers for node in set(peer.nodes))
    usual = {node for node, runs in times.items() if 2 * runs > len(peers)}
    unusual = sorted(set(run.nodes) - usual, key=lambda node: (times[node], node))
    lacking = sorted(usual - set(run.nodes))
    if not run.nodes or not usual or not (unusual or lacking):
        return []
    return [Difference(NODES, _named(unusual), _named(lacking), min((times[node] for node in lacking), default=0))]


def _named(nodes: Sequence[str]) -> str:
    more = len(nodes) - MOST_NAMED
    return ", ".join(nodes[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "") if nodes else NONE
