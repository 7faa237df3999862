"""The rules by which a node is blamed for what was found, each with the evidence that it needs."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from crosswind.data.checks import QUANTITIES
from crosswind.models.preflight.findings import Finding
from crosswind.models.preflight.references import OTHER_NODES, Basis

CLEARED_PARTNERS = 2  # nodes that have a link as usual to somebody else, beside one whose links are all slow
GPU = "gpu"


@dataclass(frozen=True)
class Blame:
    """A reason to leave a node out; value and expectation are null where the measure failed."""

    node: str
    measure: str
    device: str | None
    unit: str
    value: float | None
    expected: float | None
    basis: Basis
    evidence: int
    reason: str


def for_values(nodes: Sequence[str], findings: Sequence[Finding], notes: list[str]) -> list[Blame]:
    """A slow value, unless as many nodes are slow that the cause is elsewhere."""
    blames = []
    for measure in (name for name, quantity in QUANTITIES.items() if not quantity.of_pair):
        slow = [each for each in findings if each.measure == measure and each.is_slow]
        slow_nodes = {each.node for each in slow}
        if _is_shared(slow, slow_nodes, nodes):
            notes.append(f"{measure}: slow on {len(slow_nodes)} of {len(nodes)} nodes, so the cause is none of them")
            continue
        blames += [_blame(each, f"{_told(each)} of what {each.evidence} {each.basis} have") for each in slow]
    return blames


def _is_shared(slow: Sequence[Finding], slow_nodes: Collection[str], nodes: Sequence[str]) -> bool:
    """Half of the nodes slower than the other half says nothing of which half is usual."""
    half = len(nodes) / 2
    by_peers = any(each.basis is Basis.PEERS for each in slow)
    return len(nodes) > 1 and (len(slow_nodes) > half or (by_peers and len(slow_nodes) == half))


def for_links(findings: Sequence[Finding], notes: list[str]) -> list[Blame]:
    """All links of the node are slow, and two of its partners have others that are not."""
    blames: list[Blame] = []
    for measure in (name for name, quantity in QUANTITIES.items() if quantity.of_pair):
        links: dict[str, list[Finding]] = defaultdict(list)
        for each in (each for each in findings if each.measure == measure and each.peer):
            links[each.node].append(each)
            links[str(each.peer)].append(each)
        cleared = {node for node, of_node in links.items() if not all(each.is_slow for each in of_node)}
        blamed = {
            node
            for node, of_node in links.items()
            if node not in cleared and len(cleared & {_other(each, node) for each in of_node}) >= CLEARED_PARTNERS
        }
        blames += [_blame_of_links(node, links[node]) for node in sorted(blamed)]
        left = [each for each in findings if each.measure == measure and each.is_slow]
        notes += [
            f"{measure}: the link {each.node} - {each.peer} is slow ({_told(each)} of usual), and "
            "nothing tells which node that is due to"
            for each in left
            if not blamed & {each.node, str(each.peer)}
        ]
    return blames


def for_failures(
    nodes: Sequence[str], findings: Sequence[Finding], failures: Iterable[tuple[str, str, str]], notes: list[str]
) -> list[Blame]:
    """What failed here worked on all others, three at least."""
    blames = []
    for node, measure, reason in failures:
        worked = {each.node for each in findings if each.measure.partition("_")[0] == measure}
        others = set(nodes) - {node}
        if len(others) >= OTHER_NODES and others <= worked:
            told = f"{measure} failed, and worked on {len(others)} other nodes: {reason}"
            blames.append(Blame(node, measure, None, "", None, None, Basis.PEERS, len(others), told))
        else:
            notes.append(f"{node}: {measure} could not be measured: {reason}")
    return blames


def for_missing(nodes: Sequence[str], findings: Sequence[Finding]) -> Iterator[Blame]:
    """A GPU that all others have, three at least, is not seen here."""
    seen: dict[str, set[str]] = defaultdict(set)
    for each in findings:
        if (each.device or "").startswith(GPU):
            seen[str(each.device)].add(each.node)
    for device, owners in seen.items():
        missing = set(nodes) - owners
        if len(missing) == 1 and len(owners) >= OTHER_NODES:
            told = f"{device} is not seen here, but on all {len(owners)} other nodes"
            yield Blame(missing.pop(), "gemm", device, "", None, None, Basis.PEERS, len(owners), told)


def _blame(finding: Finding, reason: str) -> Blame:
    return Blame(
        finding.node,
        finding.measure,
        finding.device,
        finding.unit,
        finding.value,
        finding.expected,
        finding.basis,
        finding.evidence,
        reason,
    )


def _blame_of_links(node: str, links: Sequence[Finding]) -> Blame:
    """Told by the node's best link."""
    best = max(links, key=lambda each: each.z or 0.0)
    told = f"all {len(links)} links of the node are slow, the best has {_told(best)} of usual"
    return Blame(node, best.measure, None, best.unit, best.value, best.expected, best.basis, best.evidence, told)


def _told(finding: Finding) -> str:
    return f"{finding.ratio or 0:.0%}"


def _other(finding: Finding, node: str) -> str:
    return str(finding.peer) if finding.node == node else finding.node
