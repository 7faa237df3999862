"""Rows that a file tells twice, or that were told before."""

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.lake import Lake, set_of
from crosswind.data.metric import Kind
from crosswind.data.series import numbered


def distinct(table: pa.Table) -> pa.Table:
    """The rows of a set with one row for each value of its keys, the first, in the order in which they came."""
    keys = [column.name for column in set_of(table.schema).columns if column.kind is Kind.KEY]
    if _follow(table, keys):
        return table
    repeats = pd.Series(numbered(table, keys)).duplicated().to_numpy()
    return table.filter(pa.array(~repeats)) if repeats.any() else table


def without_known(lake: Lake, table: pa.Table) -> pa.Table:
    """The rows of a set of which none of the same keys is stored: a database tells all of its rows whenever it grew."""
    metric_set = set_of(table.schema)
    times = pc.min_max(table["ts_ns"]).as_py()
    if not len(table) or not lake.parts(metric_set.name, (times["min"], times["max"])):
        return table
    files = lake.files(metric_set.name, (times["min"], times["max"]))
    same = " and ".join(
        f'told."{column.name}" is not distinct from kept."{column.name}"'
        for column in metric_set.columns
        if column.kind is Kind.KEY
    )

    def ask(connection: duckdb.DuckDBPyConnection) -> pa.Table:
        connection.register("told", table)
        sql = f"select told.* from told anti join {files} kept on {same}"  # noqa: S608 - checked identifiers
        return connection.sql(sql).to_arrow_table().cast(table.schema)

    return lake.answer(ask)


def _follow(table: pa.Table, keys: list[str]) -> bool:
    """Whether time alone puts every row in its own place, in the order in which they stand."""
    others = [key for key in keys if key != "ts_ns"]
    times = table["ts_ns"].to_numpy()
    return bool((times[1:] > times[:-1]).all()) and all(_is_one(table[key]) for key in others)


def _is_one(column: pa.ChunkedArray) -> bool:
    return bool(pc.count_distinct(column, mode="all").as_py() <= 1)
