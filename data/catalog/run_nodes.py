"""The nodes of each run, node by node: the newest runs on one come from an index, however many runs are stored."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, select

from crosswind.data.catalog import rows, tables
from crosswind.data.schema.run import Run

TABLE, RUNS = tables.run_nodes, tables.runs
PLACE = TABLE.c.listed_ns, TABLE.c.run_id  # of a run in the list of its node
Keys = set[tuple[str, int, str]]


def keys_of(run: Run) -> Keys:
    """Return a row's key for each node of a run."""
    return {(node, run.started_ns or 0, run.run_id) for node in run.nodes}


def stored_keys(connection: Connection, run_ids: Iterable[str]) -> Keys:
    """Return the keys of what is stored of these runs."""
    columns = RUNS.c.nodes, RUNS.c.listed_ns, RUNS.c.run_id
    stored = connection.execute(select(*columns).where(rows.among(connection, RUNS.c.run_id, list(run_ids))))
    return {(node, began, run_id) for nodes, began, run_id in stored for node in nodes}


def change(connection: Connection, before: Keys, after: Keys) -> None:
    """Store the nodes of runs in place of those that were stored before."""
    names = TABLE.primary_key.columns.keys()
    if gone := before - after:
        where = and_(*(TABLE.c[name] == bindparam(f"old_{name}") for name in names))
        old = [{f"old_{name}": value for name, value in zip(names, key, strict=True)} for key in gone]
        connection.execute(delete(TABLE).where(where), old)
    rows.add_those_not_there(connection, TABLE, [dict(zip(names, key, strict=True)) for key in after - before])


def is_on(node: str) -> ColumnElement[bool]:
    """Return the condition on runs that this was one of their nodes."""
    return and_(TABLE.c.node == node, TABLE.c.run_id == RUNS.c.run_id)
