"""Nodes whose samples arrive: when the last one came, in which minutes there are any, and what was lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.parts import Span
from crosswind.data.schema.answers.nodes import NodeState
from crosswind.data.store.fleet import AGENT, fleet
from crosswind.data.store.store import Store
from crosswind.models.reports.period import Period, newest_sample_ns, period_of

SOURCES = (AGENT, "cpu")  # the first that is stored says when a node was sampled: the agent notes every sweep
MINUTE_NS, HOUR_NS = 60_000_000_000, 3_600_000_000_000
COLUMNS = 48  # of the time, at most
OFFSETS_OF = 200  # newest runs, whose ranks measured their clocks
QUARANTINE = "rejected"  # folder below the store's
LOSSES = ("dropped_rows_total", "dropped_segments_total", "rejected_segments_total")
_FIRST = 'select min(ts_ns) as ns from "{source}" where ts_ns between ? and ?'
_MINUTES = """
select node, (ts_ns - ?) // ? as place, count(distinct ts_ns // 60000000000) as minutes, max(ts_ns) as last_ns
from "{source}" where ts_ns between ? and ? and node is not null group by all order by all
"""
_LOSSES = """
select node, sum(lost) as lost from (
    select node, {lost} as lost from agent where ts_ns between ? and ? group by node, boot_id, began_seconds
) group by node
"""


@dataclass(frozen=True)
class NodeHealth:
    """One node: the share of minutes with a sample, in all and in each column, and the newest sample.

    `state` is of the hour up to the end of the time, `clock_offset_ns` the largest that a rank on it measured, `lost`
    rows and segments that its agent dropped or a server refused; None where nobody says.
    """

    node: str
    last_ns: int
    share: float
    shares: tuple[float, ...]
    state: NodeState | None
    clock_offset_ns: int | None
    lost: int | None


@dataclass(frozen=True)
class DataHealth:
    """All nodes with samples, those with the fewest first; the columns of `width_ns` begin at `from_ns`.

    `skipped` rows of all that ever came were not understood, and `quarantined` segments are kept aside for that; None
    where not all rows may be seen.
    """

    period: Period
    source: str
    from_ns: int
    width_ns: int
    nodes: tuple[NodeHealth, ...]
    skipped: int | None
    quarantined: int | None


@dataclass(frozen=True)
class _Grid:
    """Minutes from the first sample to the end of a period, in columns of equal width."""

    from_ns: int
    to_ns: int
    width_ns: int

    @property
    def minutes(self) -> list[int]:
        """Return how many minutes each column has."""
        begins = range(self.from_ns, self.to_ns, self.width_ns)
        return [_minutes(begin, min(begin + self.width_ns, self.to_ns)) for begin in begins]


def data_health(store: Store, days: int | None) -> DataHealth:
    """Return the nodes with samples of so many days up to now, or of the newest seven. Raises: MalformedError."""
    source = next((name for name in SOURCES if name in store.lake.sets()), AGENT)
    period = period_of(days, newest_sample_ns(store, (source,)))
    refused = _refused(store)
    first_ns = _first(store, source, period.span)
    if first_ns is None:
        return DataHealth(period, source, period.from_ns, MINUTE_NS, (), *refused)
    grid = _grid(first_ns, period.to_ns)
    nodes = _nodes(store, source, grid)
    worst_first = tuple(sorted(nodes, key=lambda one: (one.share, one.last_ns, one.node)))
    return DataHealth(period, source, grid.from_ns, grid.width_ns, worst_first, *refused)


def _refused(store: Store) -> tuple[int | None, int | None]:
    if not store.rule.sees_all:
        return None, None
    with store.catalog.read() as session:
        skipped = session.ingested().skipped
    folder = store.home / QUARANTINE
    return skipped, sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0


def _first(store: Store, source: str, span: Span) -> int | None:
    if source not in store.lake.sets():
        return None
    first: int | None = store.lake.table(_FIRST.format(source=source), span, within=span)["ns"][0].as_py()
    return first


def _grid(first_ns: int, to_ns: int) -> _Grid:
    from_ns = first_ns // MINUTE_NS * MINUTE_NS
    width = max(1, -(-_minutes(from_ns, to_ns) // COLUMNS)) * MINUTE_NS
    return _Grid(from_ns, to_ns, width)


def _minutes(begin_ns: int, end_ns: int) -> int:
    return -(-(end_ns - begin_ns) // MINUTE_NS)


def _nodes(store: Store, source: str, grid: _Grid) -> list[NodeHealth]:
    span = (grid.from_ns, grid.to_ns)
    rows = store.lake.frame(_MINUTES.format(source=source), [*(grid.from_ns, grid.width_ns), *span], within=span)
    states = {state.node: state for state in fleet(store, grid.to_ns - HOUR_NS)}
    by_node = {str(node): of_node for node, of_node in rows.groupby("node")}
    offsets, losses = _offsets(store, span), _losses(store, span)
    return [
        _node(node, of_node.to_dict("records"), grid, (states.get(node), offsets.get(node), losses.get(node)))
        for node, of_node in by_node.items()
    ]


def _node(
    node: str, rows: Sequence[Mapping[Any, Any]], grid: _Grid, facts: tuple[NodeState | None, int | None, int | None]
) -> NodeHealth:
    minutes = grid.minutes
    sampled = {int(row["place"]): int(row["minutes"]) for row in rows}
    shares = tuple(min(1.0, sampled.get(place, 0) / most) for place, most in enumerate(minutes))
    share = min(1.0, sum(sampled.values()) / sum(minutes))
    return NodeHealth(node, max(int(row["last_ns"]) for row in rows), share, shares, *facts)


def _offsets(store: Store, span: Span) -> dict[str, int]:
    with store.catalog.read() as session:
        runs = session.runs.outlines(RunFilter(since_ns=span[0], until_ns=span[1]), limit=OFFSETS_OF)
        return session.ranks.clock_offsets([run.run_id for run in runs])


def _losses(store: Store, span: Span) -> dict[str, int]:
    """Return what agents lost by node: their counters never fall, and begin again with each process."""
    columns = store.lake.columns(AGENT) if AGENT in store.lake.sets() else {}
    counted = [name for name in LOSSES if name in columns]
    if not counted or not {"boot_id", "began_seconds"} <= columns.keys():
        return {}
    lost = " + ".join(f"coalesce(max({name}) - min({name}), 0)" for name in counted)
    rows = store.lake.frame(_LOSSES.format(lost=lost), span, within=span)
    return {str(node): int(lost) for node, lost in rows.itertuples(index=False)}
