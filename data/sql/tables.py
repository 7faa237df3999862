"""The tables that a statement may name, by the rule of whoever asks: of the catalog, of jobs, and sets of the lake."""

from collections.abc import Mapping
from dataclasses import replace

from crosswind.data.schema.answers.sql import SqlColumn, SqlTable, SqlTables
from crosswind.data.schema.checks import PREFLIGHT
from crosswind.data.schema.metric import Column, Kind, MetricSet
from crosswind.data.schema.steps import LOOP_SETS
from crosswind.data.sql.catalog_tables import CATALOG_TABLES
from crosswind.data.store.jobs import JOB
from crosswind.data.store.store import Store

JOBS = replace(
    JOB,
    name="jobs",
    description="One job of a scheduler, by its newest accounts.",
    columns=tuple(
        replace(column, description="login name of its user") if column.name == "user" else column
        for column in JOB.columns
        if column.name != "ts_ns"
    ),
)
COLUMNS = MetricSet(
    "columns",
    "The columns of all tables.",
    tuple(
        Column(name, description, Kind.FACT, "string")
        for name, description in (
            ("table_name", "the table"),
            ("column_name", "the column"),
            ("type", "as DuckDB calls it"),
            ("unit", "of its values; empty without one"),
            ("description", "what it holds"),
        )
    ),
)
OF_OTHERS = frozenset({"process", "gpu_process", "cgroup", "occupancy", "protocol", "series"})
"""Sets that name processes, jobs or series of whoever else was on the node: for those who see all rows."""
NAMES_OTHERS = frozenset({"pid", "uid", "user", "job_id", "job_ids"})
TYPES = {"int64": "BIGINT", "uint64": "UBIGINT", "float64": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN"}
OF_RUNS, OF_NODES = "run_id", "node"


def tables_of(store: Store) -> Mapping[str, MetricSet]:
    """Return the tables by name, those of the catalog first; they are the same whether they hold rows or not."""
    of_catalog = {name: table.shown for name, table in CATALOG_TABLES.items()}
    built_in = (metric_set.name for metric_set in LOOP_SETS)
    named = {name: _set_of(store, name) for name in sorted({*built_in, *store.lake.sets()})}
    of_lake = {name: one for name, one in named.items() if name != JOB.name and _may_be_seen(store, one)}
    return {**of_catalog, JOBS.name: JOBS, **of_lake, COLUMNS.name: COLUMNS}


def described(store: Store) -> SqlTables:
    """Return the tables with their columns as they are shown to people."""
    return SqlTables(tuple(_table(one) for one in tables_of(store).values()))


def _table(shown: MetricSet) -> SqlTable:
    columns = tuple(SqlColumn(one.name, type_of(one), one.unit, one.description) for one in shown.columns)
    return SqlTable(shown.name, shown.description, columns)


def type_of(column: Column) -> str:
    """Return how DuckDB calls the type of a column, whose values are in base units."""
    return TYPES[dtype_of(column)]


def dtype_of(column: Column) -> str:
    """Return the type of a column's values in base units."""
    return column.dtype if column.scale == 1.0 else "float64"


def _set_of(store: Store, name: str) -> MetricSet:
    newest = store.lake.defined(name)[-1]
    return MetricSet(name, newest.description, tuple(store.lake.columns(name).values()))


def _may_be_seen(store: Store, shown: MetricSet) -> bool:
    """Return whether the rule's holder may see rows of the set that are cut by their runs or nodes."""
    names = {column.name for column in shown.columns}
    if store.rule.sees_all or OF_RUNS in names or shown.name == PREFLIGHT.name:
        return True
    return OF_NODES in names and shown.name not in OF_OTHERS and not names & NAMES_OTHERS
