"""Intervals on a node, and the number of others there; all intervals are half-open, [begin, end)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

FOREVER = 2**63 - 1  # the end of what has not ended


@dataclass(frozen=True)
class NodeInterval:
    """Somebody's time on a node, under the name by which the node's samples go."""

    node: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Stretch:
    """A part of an interval in which the number of other jobs on the node did not change."""

    node: str
    begin_ns: int
    end_ns: int
    shared_with: int


def stretches(mine: Iterable[NodeInterval], others: Iterable[tuple[str, NodeInterval]]) -> list[Stretch]:
    """My intervals as stretches that do not overlap, in order of node and time; `others` are intervals by job."""
    events: dict[str, list[tuple[int, str | None, int]]] = defaultdict(list)
    for owner, interval in [*((None, interval) for interval in mine), *others]:
        if interval.begin_ns < interval.end_ns:
            events[interval.node] += [(interval.begin_ns, owner, 1), (interval.end_ns, owner, -1)]
    return [stretch for node in sorted(events) for stretch in _of_node(node, events[node])]


def _of_node(node: str, events: list[tuple[int, str | None, int]]) -> Iterator[Stretch]:
    present: Counter[str | None] = Counter()
    running: Stretch | None = None
    moments = defaultdict(list)
    for moment, owner, change in events:
        moments[moment].append((owner, change))
    for moment in sorted(moments):
        for owner, change in moments[moment]:
            present[owner] += change
        is_here, shared_with = present[None] > 0, sum(count > 0 for owner, count in present.items() if owner)
        if running is not None and (not is_here or running.shared_with != shared_with):
            yield Stretch(node, running.begin_ns, moment, running.shared_with)
            running = None
        if is_here and running is None:
            running = Stretch(node, moment, moment, shared_with)
