"""Blocks that take longer than a reader should wait: each is computed when it is asked for, and kept."""

from collections.abc import Callable, Mapping

from crosswind.dashboards.pages.overview.asked import DAY_HOURS, HOUR_NS, Asked
from crosswind.dashboards.pages.overview.block import ROWS, Block, Column, Kind, Link, Row, address_of
from crosswind.dashboards.pages.overview.running import running
from crosswind.dashboards.pages.overview.weather import weather
from crosswind.dashboards.wording import count, moment, seconds, times
from crosswind.data.schema.answers.stragglers import PeerKind
from crosswind.data.store.fleet import fleet

SILENT_SECONDS = 600.0  # after which a node is missed: agents send once a minute


def regressions(asked: Asked) -> Block:
    """Return the newest lasting slowdowns."""
    answer = asked.client.regressions(asked.wanted.system, asked.wanted.workload)
    slower = [change for change in answer.changes if change.ratio > 1]
    more = (Link("All regressions", address_of("regressions", asked.scope)),)
    if not slower:
        among = f"{count(answer.workloads, 'workload')} over the newest {count(answer.runs, 'run')}"
        return Block("regressions", f"No workload became slower for good, of {among}.", more=more)
    newest = slower[0]
    since = f"since {moment(newest.since_ns):%Y-%m-%d}"
    return Block(
        "regressions",
        f"{newest.workload} on {newest.system} takes {times(newest.ratio)} its earlier time {since}.",
        (
            *(Column("Workload"), Column("Since", Kind.MOMENT), Column("Of its earlier time", Kind.TIMES)),
            *(Column("Runs since", Kind.NUMBER), Column("Changed with it")),
        ),
        tuple(
            Row(
                f"{change.workload} on {change.system}",
                address_of("regressions", {"system": change.system, "workload": change.workload}),
                (
                    change.since_ns,
                    change.ratio,
                    change.runs_since,
                    change.suspects[0].fact if change.suspects else "nothing recorded",
                ),
            )
            for change in slower[:ROWS]
        ),
        more,
    )


def stragglers(asked: Asked) -> Block:
    """Return nodes and devices that are slower than their peers, the surest first."""
    ranking = asked.client.stragglers(asked.wanted.system, asked.wanted.workload)
    more = (Link("All nodes", address_of("stragglers", asked.scope)),)
    kinds = (PeerKind.NODE, PeerKind.DEVICE)
    compared = [peer for peer in ranking.ranked if peer.kind in kinds]
    named = [peer for peer in compared if peer.named]
    if not compared:
        return Block("stragglers", "No nodes can be compared yet: no run had ranks on several nodes.", more=more)
    if not named:
        return Block("stragglers", f"No node or device is surely slow, of {len(compared)} compared.", more=more)
    worst = max(named, key=lambda peer: peer.ratio)
    others = f"; {count(len(named) - 1, 'other')} besides" if len(named) > 1 else ""
    return Block(
        "stragglers",
        f"{str(worst.kind).capitalize()} {worst.name} takes {times(worst.ratio)} the time of its peers{others}.",
        (
            *(Column("Name"), Column("System"), Column("Time of its peers", Kind.TIMES)),
            *(Column("90 % from", Kind.TIMES), Column("to", Kind.TIMES), Column("Since", Kind.MOMENT)),
        ),
        tuple(
            Row(
                peer.name,
                address_of("stragglers", {**asked.scope, "kind": peer.kind, "node": peer.name}),
                (peer.system, peer.ratio, peer.low_ratio, peer.high_ratio, peer.since_ns or "its first run"),
            )
            for peer in sorted(named, key=lambda peer: -peer.ratio)[:ROWS]
        ),
        more,
    )


def gaps(asked: Asked) -> Block:
    """Return nodes whose agents reported in the last day, and do not any more."""
    client = asked.client
    since_ns = asked.now_ns // HOUR_NS * HOUR_NS - DAY_HOURS * HOUR_NS  # an answer holds for this hour
    nodes = client.compute(client.store, fleet, since_ns)
    if not nodes:
        return Block("gaps", "No node's agent has reported in the last day.", command="crosswind agent")
    silent = sorted(
        (node for node in nodes if _silence(asked, node.last_sweep_ns) > SILENT_SECONDS),
        key=lambda node: node.last_sweep_ns,
    )
    more = (Link("Data health", address_of("data", asked.scope)),)
    if not silent:
        return Block(
            "gaps",
            f"No data is missing: {_all_nodes(len(nodes))} reported in the last {seconds(SILENT_SECONDS)}.",
            more=more,
        )
    longest = silent[0]
    gone = f"{longest.node} for {seconds(_silence(asked, longest.last_sweep_ns))}"
    return Block(
        "gaps",
        f"{len(silent)} of {count(len(nodes), 'node')} stopped reporting; {gone}.",
        (Column("Node"), Column("Last report", Kind.MOMENT), Column("Silent for", Kind.SECONDS)),
        tuple(
            Row(
                node.node,
                address_of("stragglers", {**asked.scope, "node": node.node}),
                (node.last_sweep_ns, _silence(asked, node.last_sweep_ns)),
            )
            for node in silent[:ROWS]
        ),
        more,
    )


def _silence(asked: Asked, last_ns: int) -> float:
    return (asked.now_ns - last_ns) * 1e-9


def _all_nodes(nodes: int) -> str:
    return "the one node" if nodes == 1 else f"all {nodes} nodes"


PARTS: Mapping[str, Callable[[Asked], Block]] = {
    "running": running,
    "weather": weather,
    "regressions": regressions,
    "stragglers": stragglers,
    "gaps": gaps,
}
NAMES = {
    "running": "Runs in progress",
    "weather": "Weather of the systems",
    "regressions": "Lasting slowdowns",
    "stragglers": "Nodes that slow runs",
    "gaps": "Nodes that stopped reporting",
}
