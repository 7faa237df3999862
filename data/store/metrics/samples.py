"""Samples of a set counted, and the growth of its counters since the sample before.

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
from crosswind.data.lake.instance import new_connection
from crosswind.data.lake.parts import DAY_NS
from crosswind.data.lake.retention.reading import Reading
from crosswind.data.lake.retention.rolled_set import NODE, RUN, TIME
from crosswind.data.lake.retention.rolling import Nodes, read_rows
from crosswind.data.lake.series import Ints, Series, in_order
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.metrics.rows import rows_of
from crosswind.data.store.metrics.selection import Selection
from crosswind.data.store.metrics.sources import LOOK_BACK_NS, ONE_EACH, Source
from crosswind.data.store.metrics.stored import Metric
from crosswind.data.store.node_intervals import NodeInterval

ROWS_MAX = 20_000_000  # of one metric; more would hold up others
CELLS_AT_ONCE = 6_000_000  # rows x columns of counters, which are held in memory
INTERVAL = "interval"
SECOND_NS = 1_000_000_000

_COUNTS = """
with devices as (
    select {key}, count(*) as samples, (max(ts_ns) - min(ts_ns)) / nullif(count(*) - 1, 0) as apart_ns
    from ({times}) group by {keys}
)
select {key}, sum(samples)::bigint, median(apart_ns) from devices group by {key} order by {key}
"""


@dataclass(frozen=True)
class Counts:
    """The number of samples by node or run, and how far apart those of one device usually are, 0 if unknown."""

    samples: Mapping[str, int]
    apart_ns: int


def checked_counts(connection: duckdb.DuckDBPyConnection, source: Source, metric: Metric) -> Counts:
    """Return how many samples a metric has. Raises: InvalidInputError for too many."""
    times = source.times(metric)
    key, keys = RUN if metric.is_of_runs else NODE, ", ".join(f'"{key}"' for key in metric.keys)
    sql = _COUNTS.format(key=key, keys=keys, times=times.sql)
    counted = connection.execute(sql, list(times.parameters)).fetchall()
    if (total := sum(count for _, count, _ in counted)) > ROWS_MAX:
        raise InvalidInputError(
            f"{metric.name}: {total} samples, expected {ROWS_MAX} at most: name nodes, or a shorter time"
        )
    apart = [float(apart_ns) for *_, apart_ns in counted if apart_ns is not None]
    apart_ns = max(round(statistics.median(apart)) if apart else 0, source.resolution * SECOND_NS)
    return Counts({str(name): count for name, count, _ in counted}, apart_ns)


def growth_of(
    source: Source, metrics: Sequence[Metric], counts: Mapping[str, int]
) -> Iterator[Mapping[Metric, pa.Table]]:
    """Yield keys, time, growth (base units), seconds, and value (growth a second) of counters of one set.

    They come some nodes at a time. What grew from one interval of a selection to the next is left out: somebody else
    was on the node meanwhile. Where roll-ups are read, there is also what their samples add up to.
    """
    first, selection = metrics[0], source.selection
    for names in _together(counts, CELLS_AT_ONCE // (len(metrics) + len(first.keys))):
        part = replace(selection, run_ids=names) if first.is_of_runs else _earlier(selection, names)
        table = _raw(source, metrics, part)
        tables = {} if table is None else dict(_all_grown(table, metrics, part, source))
        if source.resolution:
            of_names = tuple(NodeInterval(name, *selection.span) for name in names)
            own = part.intervals if selection.is_cut else of_names
            tables = {
                one: _with_rolled(tables.get(one), one, source, replace(selection, intervals=own)) for one in metrics
            }
        if tables:
            yield tables


def _raw(source: Source, metrics: Sequence[Metric], part: Selection) -> pa.Table | None:
    first, reading = metrics[0], source.reading
    rows, cuts = rows_of(part, first), reading.cuts if reading else []
    files = source.lake.files_among(first.set_name, reading.growth) if reading else source.files(first)[0]
    where = "".join(f" and not ({TIME} >= {begin_ns} and {TIME} < {end_ns})" for begin_ns, end_ns in cuts)
    needed = source.lake.needed(first.set_name, [metric.column.name for metric in metrics])
    with new_connection() as connection:
        table = read_rows(connection, files, Nodes(rows.where + where, rows.parameters), needed)
    return table if len(table) else None


def _all_grown(
    table: pa.Table, metrics: Sequence[Metric], part: Selection, source: Source
) -> Iterator[tuple[Metric, pa.Table]]:
    ordered = in_order(table.append_column(INTERVAL, pa.array(_interval_of(table, part))), apart=(INTERVAL,))
    for metric in metrics:
        grown = _grown(ordered, metric, source.selection.span[0])
        yield metric, grown if not source.resolution else _on_days(grown, source.reading)


def _on_days(grown: pa.Table, reading: Reading | None) -> pa.Table:
    days = pa.array(reading.raw if reading else [], pa.int64())
    return grown.filter(pc.is_in(pc.divide(grown[TIME], DAY_NS), value_set=days))


def _with_rolled(grown: pa.Table | None, metric: Metric, source: Source, selection: Selection) -> pa.Table:
    added_up = source.added_up(metric, selection)
    with new_connection() as connection:
        sql = added_up.sql
        if grown is not None:
            connection.register("grown", grown)
            sql = f"select *, {ONE_EACH} from grown where value is not null union all {sql}"  # noqa: S608 - identifiers
        return connection.sql(sql, params=list(added_up.parameters)).to_arrow_table()


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
