"""Samples of a day added up by time and series; growth of counters is that of raw rows, from the day before on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.lake.delta import grown
from crosswind.data.lake.instance import new_connection
from crosswind.data.lake.lake import arrow_schema
from crosswind.data.lake.parts import Span
from crosswind.data.lake.retention.rolled_set import NODE, TIME, keys_of, packed, parts_of, sampled, unpacked
from crosswind.data.lake.series import in_order
from crosswind.data.schema.keeping import resolution_of
from crosswind.data.schema.metric import Column, Kind, MetricSet

CELLS_AT_ONCE = 2_000_000  # rows x columns, of which several times as much is held in memory
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Nodes:
    """Some nodes of a set, of which not too many rows are read at once: a condition in SQL, and its parameters."""

    where: str
    parameters: tuple[object, ...]


def nodes_in(connection: duckdb.DuckDBPyConnection, source: str, width: int) -> Iterator[Nodes]:
    """Yield the nodes of files, in order, as many together as fit into memory with so many columns."""
    counted = connection.execute(
        f"select {NODE}, count(*) from {source} group by {NODE} order by {NODE} nulls first"  # noqa: S608 - our own files
    ).fetchall()
    names: list[str | None] = []
    rows = 0
    for name, count in counted:
        if names and (rows + count) * width > CELLS_AT_ONCE:
            yield _nodes(names)
            names, rows = [], 0
        names.append(name)
        rows += count
    if names:
        yield _nodes(names)


def _nodes(names: Sequence[str | None]) -> Nodes:
    given = tuple(name for name in names if name is not None)
    among = f"{NODE} in ({', '.join('?' * len(given))})" if given else "false"
    return Nodes(f"({among} or {NODE} is null)" if None in names else among, given)


def read_rows(
    connection: duckdb.DuckDBPyConnection, source: str, nodes: Nodes, columns: Mapping[str, Column]
) -> pa.Table:
    """Return the rows of nodes as they are stored, with their set."""
    names = ", ".join(f'"{name}"' for name in columns)
    sql = f"select {names} from {source} where {nodes.where}"  # noqa: S608 - our own files, checked identifiers
    table = connection.sql(sql, params=list(nodes.parameters)).to_arrow_table()
    return table.cast(arrow_schema(MetricSet("rows", "", tuple(columns.values()))))


def rolled(rows: pa.Table, sets: Sequence[MetricSet], columns: Mapping[str, Column], within: Span) -> list[pa.Table]:
    """Return the roll-up in each set of the rows of a time; earlier ones say what the first of them grew by."""
    with_growth = _with_growth(rows, columns)
    is_within = pc.and_(pc.greater_equal(rows[TIME], within[0]), pc.less_equal(rows[TIME], within[1]))
    with new_connection() as connection:
        connection.register("samples", with_growth.filter(is_within))
        return [_added_up(connection, one, columns) for one in sets]


def without_growth(rows: pa.Table, rolled: MetricSet, columns: Mapping[str, Column]) -> pa.Table:
    """Return the roll-up of rows that came after their day was retired.

    What their counters grew by stands already in the growth from the sample before them to the one after.
    """
    nothing = pa.nulls(len(rows), pa.float64())
    for column in _counters(columns):
        rows = rows.drop_columns(column.name)
        for part in ("growth", "seconds"):
            rows = rows.append_column(f"{column.name}_{part}", nothing)
    with new_connection() as connection:
        connection.register("samples", rows)
        return _added_up(connection, rolled, columns)


def together(one: pa.Table, other: pa.Table, rolled: MetricSet, columns: Mapping[str, Column]) -> pa.Table:
    """Return two roll-ups of the same resolution as one."""
    functions = {part: function for column in sampled(columns) for part, function in parts_of(column).items()}
    stored = {part: sql for column in sampled(columns) for part, sql in unpacked(column).items()}
    sums = ", ".join(f'{function}({stored[part]}) as "{part}"' for part, function in functions.items())
    keys = ", ".join(f'"{key}"' for key in (*keys_of(columns), TIME))
    with new_connection() as connection:
        connection.register("two", pa.concat_tables([one, other]))
        return _table(connection, f"select {keys}, {sums} from two group by all", rolled, columns)  # noqa: S608 - identifiers


def _counters(columns: Mapping[str, Column]) -> Iterator[Column]:
    return (column for column in sampled(columns) if column.kind is Kind.COUNTER)


def _with_growth(rows: pa.Table, columns: Mapping[str, Column]) -> pa.Table:
    ordered = in_order(rows)
    for column in _counters(columns):
        growth, seconds = grown(ordered, column.name)
        is_rate = seconds > 0
        for part, values in (("growth", growth), ("seconds", seconds)):
            of_rates = pa.array(np.where(is_rate, values, np.nan), from_pandas=True)
            rows = rows.append_column(f"{column.name}_{part}", of_rates)
    return rows


def _added_up(connection: duckdb.DuckDBPyConnection, rolled: MetricSet, columns: Mapping[str, Column]) -> pa.Table:
    width = resolution_of(rolled.name) * SECOND_NS
    keys = "".join(f'"{key}", ' for key in keys_of(columns))
    parts = ", ".join(_parts_sql(column) for column in sampled(columns))
    time = f"({TIME} // {width}) * {width} as {TIME}"
    sql = f"select {keys}{time}, {parts} from samples group by all"  # noqa: S608 - identifiers
    return _table(connection, sql, rolled, columns)


def _quoted(name: str) -> str:
    return f'"{name}"'


def _parts_sql(column: Column) -> str:
    name = column.name
    if column.kind is Kind.COUNTER:
        value = f'("{name}_growth" / "{name}_seconds")'
        further = f', sum("{name}_growth") as "{name}_growth", sum("{name}_seconds") as "{name}_seconds"'
    else:
        scaled = f'"{name}"' if column.scale == 1.0 else f'"{name}" * {column.scale!r}::double'
        value, further = f"({scaled})::double", ""
    counted = f'count({value}) as "{name}_count"'
    return (
        f'{counted}, sum({value}) as "{name}_sum", min({value}) as "{name}_min", max({value}) as "{name}_max"{further}'
    )


def _table(
    connection: duckdb.DuckDBPyConnection, sql: str, rolled: MetricSet, columns: Mapping[str, Column]
) -> pa.Table:
    """Return rows of all parts as they are stored."""
    schema = arrow_schema(rolled)
    stored = {part: sql for column in sampled(columns) for part, sql in packed(column).items()}
    names = ", ".join(f'{stored.get(name, _quoted(name))} as "{name}"' for name in schema.names)
    counts = [one.name for one in rolled.columns if one.kind is Kind.GAUGE and one.dtype == "int64"]
    whole = ", ".join(f'"{name}"::bigint as "{name}"' for name in counts)  # DuckDB's sums have 128 bits
    table: pa.Table = connection.sql(f"select {names} from (select * replace ({whole}) from ({sql}))").to_arrow_table()  # noqa: S608
    return table.cast(schema)
