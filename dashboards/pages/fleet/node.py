"""One node on the Nodes page: its effect, its checks, its runs and jobs, and gaps in its samples."""

from dataclasses import dataclass, replace

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.nodes.timeline import timeline
from crosswind.dashboards.wording import count, number, percent, times
from crosswind.data.schema.answers.nodes import NodeHistory
from crosswind.data.schema.answers.stragglers import PeerKind, PeerRanking, RankedPeer
from crosswind.data.schema.checks import QUANTITIES
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.node_question import HistoryQuestion
from crosswind.models.reports.node_report import node_history
from crosswind.models.reports.period import newest_run_ns, newest_sample_ns, period_of

LISTED = 20  # runs, jobs and gaps
AGENT = "agent"


@dataclass(frozen=True)
class CheckedValue:
    """The newest value of a measure on the node, and the one before it."""

    measure: str
    place: str
    at_ns: int
    value: float
    before: float | None
    unit: str


@dataclass(frozen=True)
class NodeView:
    """One node; without a history nothing of it is stored that may be seen."""

    sentence: str
    period: str
    switch: str | None
    history: NodeHistory | None
    checks: tuple[CheckedValue, ...]
    charts: tuple[Chart, ...]


def node_view(client: Local, node: str, ranking: PeerRanking, days: int | None) -> NodeView:
    """Return what is stored of a node in so many days, or the newest seven."""
    store = client.store
    newest = max(filter(None, (newest_run_ns(store), newest_sample_ns(store, (AGENT,)))), default=None)
    period = period_of(days, newest)
    question = HistoryQuestion(*period.span, limit=LISTED)
    try:
        history = node_history(store, node, question, lambda system: _of_system(ranking, system))
    except NotFoundError:
        sentence = f"Node {node} was in no run that can be compared, and nothing of it is stored."
        return NodeView(sentence, period.words, None, None, (), ())
    begun = tuple(gap for gap in history.gaps if gap.begin_ns > period.from_ns)  # before its first sample none is due
    history = replace(history, gaps=begun)
    chart = timeline(history)
    return NodeView(
        sentence=_sentence(node, history),
        period=period.words,
        switch=store.switches.get(node),
        history=history,
        checks=_checks(history),
        charts=() if chart is None else (chart,),
    )


def _of_system(ranking: PeerRanking, system: str) -> PeerRanking:
    return replace(ranking, ranked=tuple(peer for peer in ranking.ranked if peer.system == system))


def _sentence(node: str, history: NodeHistory) -> str:
    peer = next((peer for peer in history.ranking if peer.kind is PeerKind.NODE), None)
    return f"{_effect(node, peer)}{_agent(history)}."


def _effect(node: str, peer: RankedPeer | None) -> str:
    if peer is None:
        return f"Node {node} was in no run that can be compared"
    took = f"{times(peer.ratio)} [{number(peer.low_ratio)} to {number(peer.high_ratio)}]"
    if peer.named:
        return f"Node {node} takes {took} the time of its peers"
    if peer.chance_slower >= 0.5:
        return f"Node {node} may be slower than its peers: {took} their time, {percent(peer.chance_slower)} sure"
    return f"Node {node} is not shown to be slower than its peers: {took} their time"


def _agent(history: NodeHistory) -> str:
    """Return what is wrong with its samples; nothing where they are whole."""
    down = history.state.sources_down if history.state else ()
    parts = [count(len(history.gaps), "gap") + " in its samples"] if history.gaps else []
    parts += [count(len(down), "source") + " down"] if down else []
    return f"; {', '.join(parts)}" if parts else ""


def _checks(history: NodeHistory) -> tuple[CheckedValue, ...]:
    rows = []
    for one in history.checks:
        place = " to ".join(filter(None, (one.node, one.peer))) + (f" {one.device}" if one.device else "")
        before = one.values[1] if len(one.values) > 1 else None
        rows.append(CheckedValue(one.measure, place, one.at_ns[0], one.values[0], before, _unit(one.measure)))
    return tuple(rows)


def _unit(measure: str) -> str:
    return QUANTITIES[measure].unit if measure in QUANTITIES else ""
