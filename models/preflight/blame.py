"""Rules by which a node is blamed for a finding, with the evidence that they need."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from crosswind.data.schema.checks import QUANTITIES
from crosswind.models.preflight.findings import Finding
from crosswind.models.preflight.references import OTHER_NODES, Basis

CLEARED_PARTNERS = 2  # partners with a normal link to others, for a node whose links are all slow to be blamed
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
    """Blame nodes for slow values, unless so many nodes are slow that the cause is elsewhere."""
    blames = []
    for measure in (name for name, quantity in QUANTITIES.items() if not quantity.of_pair):
        slow = [finding for finding in findings if finding.measure == measure and finding.is_slow]
        slow_nodes = {finding.node for finding in slow}
        if _is_shared(slow, slow_nodes, nodes):
            notes.append(f"{measure}: slow on {len(slow_nodes)} of {len(nodes)} nodes, so the cause is none of them")
            continue
        blames += [
            _blame(finding, f"{_percent(finding)} of what {finding.evidence} {finding.basis} have") for finding in slow
        ]
    return blames


def _is_shared(slow: Sequence[Finding], slow_nodes: Collection[str], nodes: Sequence[str]) -> bool:
    """Return whether too many nodes are slow; if half are slower than the other half, either may be usual."""
    half = len(nodes) / 2
    by_peers = any(finding.basis is Basis.PEERS for finding in slow)
    return len(nodes) > 1 and (len(slow_nodes) > half or (by_peers and len(slow_nodes) == half))


def for_links(findings: Sequence[Finding], notes: list[str]) -> list[Blame]:
    """Blame nodes whose links are all slow, where two partners have other links that are not."""
    blames: list[Blame] = []
    for measure in (name for name, quantity in QUANTITIES.items() if quantity.of_pair):
        links: dict[str, list[Finding]] = defaultdict(list)
        for link in (finding for finding in findings if finding.measure == measure and finding.peer):
            links[link.node].append(link)
            links[str(link.peer)].append(link)
        cleared = {node for node, of_node in links.items() if not all(finding.is_slow for finding in of_node)}
        blamed = {
            node
            for node, of_node in links.items()
            if node not in cleared and len(cleared & {_other(finding, node) for finding in of_node}) >= CLEARED_PARTNERS
        }
        blames += [_blame_of_links(node, links[node]) for node in sorted(blamed)]
        left = [finding for finding in findings if finding.measure == measure and finding.is_slow]
        notes += [
            f"{measure}: the link {finding.node} - {finding.peer} is slow ({_percent(finding)} of usual), and "
            "nothing tells which node that is due to"
            for finding in left
            if not blamed & {finding.node, str(finding.peer)}
        ]
    return blames


def for_failures(
    nodes: Sequence[str], findings: Sequence[Finding], failures: Iterable[tuple[str, str, str]], notes: list[str]
) -> list[Blame]:
    """Blame nodes for measures that failed there and worked on all others, three at least."""
    blames = []
    for node, measure, reason in failures:
        worked = {finding.node for finding in findings if finding.measure.partition("_")[0] == measure}
        others = set(nodes) - {node}
        if len(others) >= OTHER_NODES and others <= worked:
            sentence = f"{measure} failed, and worked on {len(others)} other nodes: {reason}"
            blames.append(Blame(node, measure, None, "", None, None, Basis.PEERS, len(others), sentence))
        else:
            notes.append(f"{node}: {measure} could not be measured: {reason}")
    return blames


def for_missing(nodes: Sequence[str], findings: Sequence[Finding]) -> Iterator[Blame]:
    """Blame nodes for a GPU that is missing there and present on all others, three at least."""
    seen: dict[str, set[str]] = defaultdict(set)
    for finding in findings:
        if (finding.device or "").startswith(GPU):
            seen[str(finding.device)].add(finding.node)
    for device, owners in seen.items():
        missing = set(nodes) - owners
        if len(missing) == 1 and len(owners) >= OTHER_NODES:
            sentence = f"{device} is not seen here, but on all {len(owners)} other nodes"
            yield Blame(missing.pop(), "gemm", device, "", None, None, Basis.PEERS, len(owners), sentence)


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
    """Blame a node, with its best link as the value."""
    best = max(links, key=lambda link: link.z or 0.0)
    sentence = f"all {len(links)} links of the node are slow, the best has {_percent(best)} of usual"
    return Blame(node, best.measure, None, best.unit, best.value, best.expected, best.basis, best.evidence, sentence)


def _percent(finding: Finding) -> str:
    return f"{finding.ratio or 0:.0%}"


def _other(finding: Finding, node: str) -> str:
    return str(finding.peer) if finding.node == node else finding.node
