"""References that a value is compared with: the fleet, earlier checks, or the other nodes of this check."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from crosswind.data.schema.answers.checks import EarlierChecks
from crosswind.data.schema.checks import QUANTITIES, Measured
from crosswind.models.preflight.usual import Usual, usual

EARLIER_NODES = EARLIER_CHECKS = 5
OTHER_NODES = 3
MANY_NODES = 50
Alike = tuple[str, str, str, str]


class Basis(StrEnum):
    """The source of what is usual."""

    FLEET = "earlier nodes"
    CHECKS = "earlier checks"
    PEERS = "other nodes of this check"
    NOBODY = "nobody"


@dataclass(frozen=True)
class Reference:
    """A reference: what is usual, who says so, and how many those are."""

    basis: Basis
    evidence: int
    usual: Usual | None


def alike(value: Measured | EarlierChecks) -> Alike:
    """Return the key of comparable values: measure, method, hardware, and the mount point of a disk."""
    device = value.device or ""
    return value.measure, value.method, value.hardware, device if device.startswith("/") else ""


class References:
    """References for the values of a check, from earlier checks and from this one."""

    def __init__(self, history: Iterable[EarlierChecks], measured: Iterable[Measured]) -> None:
        self._earlier: dict[Alike, list[EarlierChecks]] = defaultdict(list)
        for earlier in history:
            self._earlier[alike(earlier)].append(earlier)
        self._now: dict[Alike, list[Measured]] = defaultdict(list)
        for measurement in measured:
            self._now[alike(measurement)].append(measurement)
        self._of_all: dict[Alike, Reference | None] = {}

    def of(self, value: Measured) -> Reference:
        """The best reference there is for this value.

        It is not compared with its own node, unless that is one of fifty or more, whose median one cannot move.
        """
        group = alike(value)
        if group not in self._of_all:
            self._of_all[group] = self._by_many(group)
        return self._of_all[group] or self._by_few(group, value)

    def _by_many(self, group: Alike) -> Reference | None:
        """One reference for all values of the group, where there are many nodes."""
        earlier = self._earlier.get(group, [])
        if len(_nodes(earlier)) >= MANY_NODES:
            return _by_fleet(group, earlier)
        if len(_nodes(earlier)) > EARLIER_NODES or len(_checks(earlier)) >= EARLIER_CHECKS:
            return None
        now = self._now[group]
        return (
            _by_nodes(group, now, len(_nodes(now)) - 1) if len(_nodes(now)) >= MANY_NODES or _are_pairs(group) else None
        )

    def _by_few(self, group: Alike, value: Measured) -> Reference:
        earlier = self._earlier.get(group, [])
        ends = {value.node, value.peer or value.node}
        others = [series for series in earlier if not ends & {series.node, series.peer or series.node}]
        if len(_nodes(others)) >= EARLIER_NODES:
            return _by_fleet(group, others)
        checks = _checks(earlier)
        if len(checks) >= EARLIER_CHECKS:
            numbers = [number for series in earlier for number in series.values]
            return Reference(Basis.CHECKS, len(checks), usual(value.measure, numbers))
        now = [measurement for measurement in self._now[group] if _are_pairs(group) or measurement.node != value.node]
        return _by_nodes(group, now, len(_nodes(now) - {value.node}))


def _by_fleet(group: Alike, earlier: Sequence[EarlierChecks]) -> Reference:
    medians = _by_place((series.node, series.peer, series.values) for series in earlier)
    return Reference(Basis.FLEET, len(_nodes(earlier)), usual(group[0], medians))


def _by_nodes(group: Alike, now: Sequence[Measured], others: int) -> Reference:
    """Compare with the medians of nodes; those of pairs count for both nodes, so a slow one affects only its own."""
    if others < OTHER_NODES:
        return Reference(Basis.NOBODY, 0, None)
    of_nodes = [
        (node, "", (measurement.value,)) for measurement in now for node in (measurement.node, measurement.peer) if node
    ]
    return Reference(Basis.PEERS, others, usual(group[0], _by_place(of_nodes)))


def _nodes(values: Iterable[Measured | EarlierChecks]) -> set[str]:
    return {node for entry in values for node in (entry.node, entry.peer) if node}


def _checks(earlier: Iterable[EarlierChecks]) -> set[int]:
    return {at_ns for series in earlier for at_ns in series.at_ns}


def _are_pairs(group: Alike) -> bool:
    return QUANTITIES[group[0]].of_pair


def _by_place(values: Iterable[tuple[str, str, Sequence[float]]]) -> list[float]:
    """The median of each node or pair, so that many checks of one count no more than few of another."""
    kept: Mapping[tuple[str, str], list[float]] = defaultdict(list)
    for node, peer, numbers in values:
        kept[node, peer].extend(numbers)
    return [median(numbers) for numbers in kept.values()]
