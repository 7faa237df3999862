"""The Nodes page: nodes, devices and rank places that are slower than their peers, by switch, and one of the nodes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.fleet import fleet_plot
from crosswind.dashboards.pages.fleet.node import NodeView, node_view
from crosswind.dashboards.pages.page import FLEET, Page, PageQuery, Place
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.wording import count, number, times
from crosswind.data.schema.answers.stragglers import PeerKind, PeerRanking, RankedPeer
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.hostlist import compress
from crosswind.models.stragglers.fleet import recent_ranking

SHOWN, MOST_SHOWN = 25, 500
TILES = 500  # nodes of the map, those of the switches with the slowest ones


@dataclass(frozen=True)
class Switch:
    """A leaf switch and its nodes that were compared, in the order of their names."""

    name: str
    nodes: tuple[RankedPeer, ...]


@dataclass(frozen=True)
class StragglersView:
    """The page's contents; the rows have the first of the `listed` peers, `of_node` the node of the query.

    `exclude` is Slurm's option that leaves the named nodes of one system out; empty when there are none.
    """

    sentence: str
    scope: Scope
    compared_runs: int
    timed_runs: int
    runs: int
    noise_ratio: float | None
    kind: str | None
    kinds: tuple[str, ...]
    node: str | None
    named: int
    listed: int
    rows: tuple[RankedPeer, ...]
    exclude: str
    warnings: tuple[str, ...]
    charts: tuple[Chart, ...]
    switches: tuple[Switch, ...] = ()
    of_node: NodeView | None = None
    next_place: Place | None = None

    title = "Nodes"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return not self.listed


def view(client: Local, query: PageQuery) -> StragglersView:
    """Return the fleet's ranking, or one node of it. Raises: InvalidInputError."""
    kind, node = query.choice("kind", tuple(PeerKind)), query.word("node")
    limit = query.amount("limit", SHOWN, most=MOST_SHOWN)
    scope = scope_of(client, query)
    if not scope.runs:
        return StragglersView("", scope, 0, 0, 0, None, kind, tuple(PeerKind), node, 0, 0, (), "", (), ())
    ranking = _ranking(client, scope, query.days)
    listed = [entry for entry in ranking.ranked if kind in (None, entry.kind) and (node is None or _is_of(entry, node))]
    of_node = node_view(client, node, ranking, query.days) if node else None
    chart = fleet_plot(PeerKind(kind) if kind else _kind_of_first(ranking.ranked), ranking.ranked)
    return StragglersView(
        sentence=of_node.sentence if of_node else _sentence(ranking.named, len(ranking.ranked)),
        scope=scope,
        compared_runs=ranking.compared_runs,
        timed_runs=ranking.timed_runs,
        runs=ranking.runs,
        noise_ratio=ranking.noise_ratio,
        kind=kind,
        kinds=tuple(PeerKind),
        node=node,
        named=len(ranking.named),
        listed=len(listed),
        rows=tuple(listed[:limit]),
        exclude=_exclude([entry for entry in ranking.named if node in (None, entry.name)]),
        warnings=ranking.warnings,
        charts=of_node.charts if of_node else () if chart is None else (chart,),
        switches=() if of_node else _switches(client.store.switches, ranking.ranked),
        of_node=of_node,
    )


PAGE = Page(
    "stragglers",
    "/stragglers",
    "stragglers.html",
    view,
    FLEET,
    label="Nodes",
    table="rows",
    fill="srun crosswind run -- python train.py",
    hint="Run on several nodes",
)


def _ranking(client: Local, scope: Scope, days: int | None) -> PeerRanking:
    if days is None:
        return client.stragglers(scope.system, scope.workload)
    return client.compute(client.store, recent_ranking, scope.system, scope.workload, days)


def _switches(switches: Mapping[str, str], ranked: Sequence[RankedPeer]) -> tuple[Switch, ...]:
    """Return the switches whose nodes were compared, those with the slowest node first."""
    by_switch: dict[str, list[RankedPeer]] = {}
    for entry in sorted((one for one in ranked if one.kind is PeerKind.NODE), key=lambda one: -one.ratio)[:TILES]:
        if entry.name in switches:
            by_switch.setdefault(switches[entry.name], []).append(entry)
    return tuple(Switch(name, tuple(sorted(nodes, key=_in_order))) for name, nodes in by_switch.items())


def _in_order(entry: RankedPeer) -> tuple[tuple[int, str], ...]:
    """Return the place of a name, with the numbers in it by their size."""
    return tuple((int(part) if part.isdecimal() else -1, part) for part in re.split(r"([0-9]{1,18})", entry.name))


def _is_of(entry: RankedPeer, node: str) -> bool:
    """Return whether the entry is the node, or a device of it."""
    return entry.name == node if entry.kind is PeerKind.NODE else entry.name.startswith(f"{node} ")


def _kind_of_first(ranked: Sequence[RankedPeer]) -> PeerKind:
    """Return the kind of the surest straggler; nodes if there is none."""
    return next((entry.kind for entry in ranked if entry.named), PeerKind.NODE)


def _exclude(named: Sequence[RankedPeer]) -> str:
    """Return the option for the stragglers in the system of the surest one."""
    nodes = [entry for entry in named if entry.kind is PeerKind.NODE]
    if not nodes:
        return ""
    try:
        return f"--exclude={compress(node.name for node in nodes if node.system == nodes[0].system)}"
    except MalformedError:  # made-up names that Slurm would not take
        return ""


def _sentence(named: Sequence[RankedPeer], compared: int) -> str:
    if not compared:
        return "Nothing can be compared yet."
    if not named:
        return f"Nothing is surely slower than its peers, of {compared} nodes, devices and rank places compared."
    worst = max(named, key=lambda entry: entry.ratio)
    took = f"{times(worst.ratio)} [{number(worst.low_ratio)} to {number(worst.high_ratio)}]"
    others = f"; {count(len(named) - 1, 'other straggler')} besides" if len(named) > 1 else ""
    kind = str(worst.kind).capitalize()
    return f"{kind} {worst.name} takes {took} the time of its peers{others}."
