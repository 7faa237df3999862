"""The Data health page: nodes that stopped sending, gaps, clocks, losses, and the cost of collecting."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.nodes.sampled import sampled_nodes
from crosswind.dashboards.pages.page import FLEET, Page, PageQuery, Place
from crosswind.dashboards.wording import count, percent, utc
from crosswind.models.reports.data_health import HOUR_NS, DataHealth, NodeHealth, data_health

SHOWN, MOST_SHOWN = 25, 500
WHOLE = 0.995  # of the minutes: a node with more has no gap worth a word


@dataclass(frozen=True)
class NodeRow:
    """One node; `lag_seconds` is the age of its newest sample."""

    health: NodeHealth
    lag_seconds: float
    is_silent: bool


@dataclass(frozen=True)
class DataView:
    """The page's contents; the rows have the worst of `listed` nodes."""

    sentence: str
    chosen: str | None
    period: str
    source: str
    silent: int
    listed: int
    rows: tuple[NodeRow, ...]
    skipped: int | None
    quarantined: int | None
    cpu_ratio: float | None
    charts: tuple[Chart, ...]
    next_place: Place | None = None

    title = "Data health"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return not self.rows


def view(client: Local, query: PageQuery) -> DataView:
    """Return the nodes with samples, the worst first. Raises: InvalidInputError."""
    days, limit = query.days, query.amount("limit", SHOWN, most=MOST_SHOWN)
    health = client.compute(client.store, data_health, days)
    now_ns = time.time_ns()
    silent = [node for node in health.nodes if now_ns - node.last_ns > HOUR_NS]
    chart = sampled_nodes(health)
    costs = [node.state.cpu_ratio for node in health.nodes if node.state and node.state.cpu_ratio is not None]
    return DataView(
        sentence=_sentence(health, silent),
        chosen=query.word("period"),
        period=health.period.words,
        source=health.source,
        silent=len(silent),
        listed=len(health.nodes),
        rows=tuple(_row(node, now_ns) for node in sorted(health.nodes, key=_worst)[:limit]),
        skipped=health.skipped,
        quarantined=health.quarantined,
        cpu_ratio=max(costs, default=None),
        charts=() if chart is None else (chart,),
    )


PAGE = Page(
    "data",
    "/data",
    "data.html",
    view,
    FLEET,
    label="Data health",
    table="rows",
    fill="crosswind agent",
    hint="Sample your nodes",
)


def _worst(node: NodeHealth) -> tuple[int, float, str]:
    """Return the place of a node: those that are silent for the longest first, by hours, then the gappy ones."""
    return node.last_ns // HOUR_NS, node.share, node.node


def _row(node: NodeHealth, now_ns: int) -> NodeRow:
    return NodeRow(node, (now_ns - node.last_ns) / 1e9, now_ns - node.last_ns > HOUR_NS)


def _sentence(health: DataHealth, silent: Sequence[NodeHealth]) -> str:
    if not health.nodes:
        return f"No node sent samples {health.period.words}."
    nodes, worst = len(health.nodes), health.nodes[0]
    if len(silent) == nodes:
        last = utc(max(node.last_ns for node in silent))
        return f"Nothing came in the last hour from {count(nodes, 'node')}; the last sample is of {last}."
    if silent:
        return f"{len(silent)} of {count(nodes, 'node')} sent nothing in the last hour{_names(silent)}."
    if worst.share < WHOLE:
        return f"Every node reports; {worst.node} was sampled in {percent(worst.share)} of the time."
    return f"{count(nodes, 'node')} report without a gap." if nodes > 1 else "1 node reports without a gap."


def _names(silent: Sequence[NodeHealth]) -> str:
    names = ", ".join(node.node for node in silent[:3])
    return f": {names}" + (" and others" if len(silent) > 3 else "")
