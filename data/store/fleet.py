"""Nodes that are heard of: their last sweeps, the sources that are down, and what their agents cost and lost."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from crosswind.data.lake.delta import Flag, differences
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.parts import ALWAYS, Span
from crosswind.data.lake.series import Bools, Series, in_order
from crosswind.data.schema.answers.nodes import DownSource, NodeState
from crosswind.data.schema.part import Part
from crosswind.data.store.store import Store

AGENT, COLLECTOR = "agent", "collector"  # the sets in which agents speak of themselves and of their sources
COUNTERS = ("cpu_seconds_total", "missed_ticks_total", "lost_sweeps_total")
EVERY = Part(limit=2**31)
NEIGHBOURS = 2  # sweeps on either side of a fall that may be another agent's: of two, each sweeps once a tick
_WITHIN = "ts_ns between ? and ? and node between ? and ?"
_SWEEPS = """
select node, count(*) as sweeps, max(ts_ns) as last_ns, quantile_cont({lateness_seconds}, 0.99) as lateness_seconds,
    max_by({resident_bytes}, ts_ns) as resident_bytes, max_by({clock_error_max_seconds}, ts_ns) as clock_error_seconds,
    max_by({clock_synchronized}, ts_ns) as clock_synchronized
from agent where ts_ns between ? and ? and node between ? and ? and (? is null or node {{sign}} ?)
group by node order by node {{order}} limit ?
"""
_SOURCES = """
select node, device, max_by({{'up': {up}, 'reason': {reason}}}, ts_ns) as shown
from collector where ts_ns between ? and ? and node between ? and ? and device is not null
group by node, device order by device
"""
REPORTED = {
    AGENT: ("lateness_seconds", "resident_bytes", "clock_error_max_seconds", "clock_synchronized"),
    COLLECTOR: ("up", "reason"),
}


@dataclass
class _Sources:
    """A node's sources, up and down, when they were last looked at."""

    up: list[str] = field(default_factory=list)
    down: list[DownSource] = field(default_factory=list)


_Numbers = Mapping[str, Any]
_Span = tuple[int, int, str, str]  # from when to when, from which node to which
LAST_NODE = "\U0010ffff"


def fleet(store: Store, since_ns: int, part: Part = EVERY) -> tuple[NodeState, ...]:
    """Return a part of the nodes with sweeps since then, by name. Raises: MalformedError."""
    return _states(store, (since_ns, ALWAYS[1], "", LAST_NODE), part)


def node_state(store: Store, node: str, within: Span) -> NodeState | None:
    """The state of one node's agent within a time; None without sweeps. Raises: MalformedError."""
    return next(iter(_states(store, (*within, node, node))), None)


def _states(store: Store, wanted: _Span, part: Part = EVERY) -> tuple[NodeState, ...]:
    lake, stored = store.lake, store.lake.sets()
    if AGENT not in stored:
        return ()
    [after] = part.after or [None]
    order = {"sign": "<", "order": "desc"} if part.descending else {"sign": ">", "order": "asc"}
    sql = _sql(lake, AGENT, _SWEEPS).format_map(order)
    sweeps = _by_node(lake.frame(sql, [*wanted, after, after, part.limit], within=wanted[:2]))
    if not sweeps:
        return ()
    span = *wanted[:2], min(sweeps), max(sweeps)
    sources = _sources(lake, span) if COLLECTOR in stored else {}
    costs = _costs(lake, span)
    return tuple(_state(sweeps[node], sources.get(node, _Sources()), costs.get(node, {})) for node in sweeps)


def _sql(lake: Lake, name: str, sql: str) -> str:
    """The query with null for columns that no agent has reported so far."""
    columns = lake.columns(name)
    return sql.format_map({column: column if column in columns else "null::int" for column in REPORTED[name]})


def _sources(lake: Lake, span: _Span) -> dict[str, _Sources]:
    by_node: dict[str, _Sources] = defaultdict(_Sources)
    frame = lake.frame(_sql(lake, COLLECTOR, _SOURCES), span, within=span[:2])
    for node, name, shown in frame.itertuples(index=False):
        if shown["up"] == 1:
            by_node[node].up.append(name)
        else:
            by_node[node].down.append(DownSource(name, shown["reason"]))
    return by_node


def _costs(lake: Lake, span: _Span) -> dict[str, _Numbers]:
    """Return what each node's counters grew by, and the seconds in which they did."""
    if not set(COUNTERS) <= lake.columns(AGENT).keys():
        return {}
    series = in_order(lake.counters(AGENT, COUNTERS, where=_WITHIN, parameters=span, within=span[:2]))
    used = differences(series, COUNTERS[0])
    grown = {name: differences(series, name)["growth"] for name in COUNTERS[1:]}
    frame = pd.DataFrame({COUNTERS[0]: used["growth"], "seconds": used["seconds"], **grown})
    is_fall = (used["flag"].to_numpy() & Flag.AMBIGUOUS) != 0
    frame[_near(series, is_fall)] = pd.NA
    frame["node"] = series.rows["node"].to_pandas()
    return _by_node(frame.groupby("node").sum(min_count=1).reset_index())


def _near(series: Series, is_fall: Bools) -> Bools:
    """The rows at which, or next to which, another process speaks than before.

    An agent's processor time never falls. Two agents on a node, as that of `crosswind run` beside the node's own, take
    turns: what rises from one to the other is next to a fall.
    """
    ordered = is_fall[series.order]
    near = ordered.copy()
    for distance in range(1, NEIGHBOURS + 1):
        is_same = series.series[distance:] == series.series[:-distance]
        near[distance:] |= ordered[:-distance] & is_same
        near[:-distance] |= ordered[distance:] & is_same
    placed = np.empty_like(near)
    placed[series.order] = near
    return placed


def _by_node(frame: pd.DataFrame) -> dict[str, _Numbers]:
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return {record["node"]: {str(name): value for name, value in record.items()} for record in records}


def _state(sweeps: _Numbers, sources: _Sources, costs: _Numbers) -> NodeState:
    used, seconds = costs.get(COUNTERS[0]), costs.get("seconds")
    synchronized = sweeps["clock_synchronized"]
    return NodeState(
        sweeps["node"],
        sweeps["last_ns"],
        sweeps["sweeps"],
        tuple(sources.up),
        tuple(sources.down),
        missed_ticks=_whole(costs.get("missed_ticks_total")),
        lost_sweeps=_whole(costs.get("lost_sweeps_total")),
        lateness_p99_seconds=sweeps["lateness_seconds"],
        cpu_ratio=used / seconds if used is not None and seconds else None,
        resident_bytes=_whole(sweeps["resident_bytes"]),
        clock_error_seconds=sweeps["clock_error_seconds"],
        clock_synchronized=None if synchronized is None else bool(synchronized),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
