"""The Stragglers page: nodes, devices and rank places that are slower than their peers."""

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.fleet import fleet_plot
from crosswind.dashboards.pages.page import FLEET, Page, PageQuery, Place
from crosswind.dashboards.pages.scope import Scope, scope_of
from crosswind.dashboards.wording import count, number, times
from crosswind.data.schema.answers.stragglers import PeerKind, RankedPeer
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.hostlist import compress

SHOWN, MOST_SHOWN = 25, 500


@dataclass(frozen=True)
class StragglersView:
    """The page's contents; the rows have the first of the `listed` peers.

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
    next_place: Place | None = None

    title = "Stragglers"


def view(client: Local, query: PageQuery) -> StragglersView:
    """Return the fleet's ranking, or one node of it. Raises: InvalidInputError."""
    kind, node = query.choice("kind", tuple(PeerKind)), query.word("node")
    limit = query.amount("limit", SHOWN, most=MOST_SHOWN)
    scope = scope_of(client, query)
    if not scope.runs:
        return StragglersView("", scope, 0, 0, 0, None, kind, tuple(PeerKind), node, 0, 0, (), "", (), ())
    ranking = client.stragglers(scope.system, scope.workload)
    listed = [entry for entry in ranking.ranked if kind in (None, entry.kind) and (node is None or _is_of(entry, node))]
    chart = fleet_plot(PeerKind(kind) if kind else _kind_of_first(ranking.ranked), ranking.ranked)
    return StragglersView(
        sentence=_sentence(ranking.named, len(ranking.ranked)),
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
        exclude=_exclude(ranking.named),
        warnings=ranking.warnings,
        charts=() if chart is None else (chart,),
    )


PAGE = Page("stragglers", "/stragglers", "stragglers.html", view, FLEET, label="Stragglers", table="rows")


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
