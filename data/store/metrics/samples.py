"""Samples of one metric as DuckDB reads them: keys, time and value; of counters, the growth since the sample before.

Files of other times are not opened, of the others the groups of rows of other nodes are passed over, and counters of
many nodes are read some nodes at a time.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.lake.delta import differences
from crosswind.data.lake.lake import Lake, converted
from crosswind.data.lake.parts import Span
from crosswind.data.lake.series import Ints, Series, in_order
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.metrics.selection import Selection
from crosswind.data.store.metrics.stored import NODE, RUN, TIME, Metric
from crosswind.data.store.node_intervals import NodeInterval

ROWS_MAX = 20_000_000  # of one metric; more would hold up others
CELLS_AT_ONCE = 6_000_000  # rows x columns of counters, which are held in memory
LOOK_BACK_NS = (
    300_000_000_000  # before the time that is asked for: the growth of its first samples needs the ones before
)
INTERVAL, DEVICE = "interval", "device"
WITHIN = """exists (
    select 1 from (select unnest(?) as at_node, unnest(?::bigint[]) as from_ns, unnest(?::bigint[]) as until_ns)
    where at_node = node and ts_ns >= from_ns and ts_ns < until_ns
)"""


@dataclass(frozen=True)
class Rows:
    """Rows of a metric's set: SQL that selects them, its parameters, and the time of the files to open."""

    where: str
    parameters: tuple[object, ...]
    span: Span


def rows_of(selection: Selection, metric: Metric) -> Rows:
    """Return the rows that a selection means, of a metric of runs or of nodes."""
    begin_ns, end_ns = selection.span
    span = (begin_ns, end_ns - 1)
    if metric.is_of_runs:
        if not selection.run_ids:
            raise InvalidInputError(f"run None: {metric.name} is of runs: name some, or a job")
        return Rows(f"{TIME} between ? and ? and {_among(RUN, selection.run_ids)}", (*span, *selection.run_ids), span)
    rows = _at_any_time(span) if selection.intervals is None else _on_nodes(selection.intervals, span)
    if not selection.devices or DEVICE not in metric.keys:
        return rows
    where = f"{rows.where} and {_among(DEVICE, selection.devices)}"
    return replace(rows, where=where, parameters=(*rows.parameters, *selection.devices))


def _at_any_time(span: Span) -> Rows:
    return Rows(f"{TIME} between ? and ?", span, span)


def _on_nodes(intervals: Sequence[NodeInterval], span: Span) -> Rows:
    nodes = sorted({interval.node for interval in intervals})
    if not nodes:
        return Rows("false", (), span)
    where = f"{TIME} between ? and ? and {_among(NODE, nodes)}"  # what whole groups of rows are passed over by
    if all((one.begin_ns, one.end_ns - 1) == span for one in intervals):
        return Rows(where, (*span, *nodes), span)
    columns = [
        list(column) for column in zip(*((one.node, one.begin_ns, one.end_ns) for one in intervals), strict=True)
    ]
    return Rows(f"{where} and {WITHIN}", (*span, *nodes, *columns), span)


def _among(column: str, values: Sequence[str]) -> str:
    return f"{column} in ({', '.join('?' * len(values))})"


_COUNTS = """
with devices as (
    select {key}, count(*) as samples, (max(ts_ns) - min(ts_ns)) / nullif(count(*) - 1, 0) as apart_ns
    from {files} where {where} group by {keys}
)
select {key}, sum(samples)::bigint, median(apart_ns) from devices group by {key} order by {key}
"""


@dataclass(frozen=True)
class Counts:
    """The number of samples by node or run, and how far apart those of one device usually are, 0 if unknown."""

    samples: Mapping[str, int]
    apart_ns: int


def checked_counts(connection: duckdb.DuckDBPyConnection, lake: Lake, metric: Metric, selection: Selection) -> Counts:
    """Return how many samples a metric has. Raises: InvalidInputError for too many."""
    rows = rows_of(selection, metric)
    key, keys = RUN if metric.is_of_runs else NODE, ", ".join(f'"{key}"' for key in metric.keys)
    sql = _COUNTS.format(key=key, keys=keys, files=_files(lake, metric, rows), where=rows.where)
    counted = connection.execute(sql, list(rows.parameters)).fetchall()
    if (total := sum(count for _, count, _ in counted)) > ROWS_MAX:
        raise InvalidInputError(
            f"{metric.name}: {total} samples, expected {ROWS_MAX} at most: name nodes, or a shorter time"
        )
    apart = [float(apart_ns) for *_, apart_ns in counted if apart_ns is not None]
    return Counts({str(name): count for name, count, _ in counted}, round(statistics.median(apart)) if apart else 0)


def gauge_sql(lake: Lake, metric: Metric, rows: Rows) -> str:
    """Return the samples of a gauge in base units, in SQL with the parameters of the rows."""
    keys = ", ".join(f'"{key}"' for key in metric.keys)
    value = converted(metric.column).removesuffix(f' as "{metric.column.name}"')
    files = _files(lake, metric, rows)
    return f"select {keys}, {TIME}, {value}::double as value from {files} where {rows.where}"  # noqa: S608 - identifiers


def _files(lake: Lake, metric: Metric, rows: Rows) -> str:
    if not metric.is_of_runs:
        return lake.files(metric.set_name, rows.span)
    run_ids = [str(one) for one in rows.parameters[2:]]
    parts = lake.parts(metric.set_name, rows.span, run_ids)
    return lake.source(metric.set_name, parts or lake.parts(metric.set_name)[-1:])


def growth_of(
    lake: Lake, metrics: Sequence[Metric], selection: Selection, counts: Mapping[str, int]
) -> Iterator[Mapping[Metric, pa.Table]]:
    """Yield keys, time, growth (base units), seconds, and value (growth a second) of counters of one set.

    They come some nodes at a time. What grew from one interval of a selection to the next is left out: somebody else
    was on the node meanwhile.
    """
    first = metrics[0]
    for names in _together(counts, CELLS_AT_ONCE // (len(metrics) + len(first.keys))):
        part = replace(selection, run_ids=names) if first.is_of_runs else _earlier(selection, names)
        rows, columns = rows_of(part, first), [metric.column.name for metric in metrics]
        table = lake.counters(first.set_name, columns, where=rows.where, parameters=rows.parameters, within=rows.span)
        if len(table):
            ordered = in_order(table.append_column(INTERVAL, pa.array(_interval_of(table, part))), apart=(INTERVAL,))
            yield {metric: _grown(ordered, metric, selection.span[0]) for metric in metrics}


def _together(counts: Mapping[str, int], rows_at_once: int) -> Iterator[tuple[str, ...]]:
    names: list[str] = []
    rows = 0
    for name, count in counts.items():
        if names and rows + count > rows_at_once:
            yield tuple(names)
            names, rows = [], 0
        names.append(name)
        rows += count
    if names:
        yield tuple(names)


def _earlier(selection: Selection, nodes: Sequence[str]) -> Selection:
    """Return the part of a selection on these nodes, from a little earlier where that may be seen."""
    begin_ns, end_ns = selection.span
    if selection.is_cut:
        return replace(selection, intervals=tuple(one for one in selection.intervals or () if one.node in set(nodes)))
    span = max(0, begin_ns - LOOK_BACK_NS), end_ns
    intervals = tuple(NodeInterval(node, *span) for node in nodes)
    return Selection(span, (), intervals, is_cut=False, devices=selection.devices)


def _grown(ordered: Series, metric: Metric, begin_ns: int) -> pa.Table:
    grown = differences(ordered, metric.column.name)
    keys = ordered.rows.select([*metric.keys, TIME])
    for name, column in (("growth", "growth"), ("seconds", "seconds"), ("value", "rate")):
        values = grown[column].to_numpy(np.float64, na_value=np.nan)
        keys = keys.append_column(name, pa.array(values, from_pandas=True))
    return keys.filter(pc.greater_equal(keys[TIME], begin_ns))


def _interval_of(table: pa.Table, selection: Selection) -> Ints:
    """Return for each row a number of the interval that it is in, which differs within a node."""
    if not selection.is_cut or NODE not in table.column_names:
        return np.zeros(len(table), np.int64)
    rows = pd.DataFrame({"node": table[NODE].to_pandas(), "at_ns": table[TIME].to_numpy()}).reset_index()
    starts = [(one.node, one.begin_ns, number) for number, one in enumerate(selection.intervals or ())]
    begins = pd.DataFrame(starts, columns=["node", "at_ns", INTERVAL]).sort_values("at_ns")
    placed = pd.merge_asof(rows.sort_values("at_ns"), begins, on="at_ns", by="node").sort_values("index")
    return placed[INTERVAL].fillna(0).to_numpy(np.int64)
