"""Columns of tables in SQLite files of other tools, block by block."""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from crosswind.ingest.readers.sqlite_file import columns_of, tables_of

BLOCK_ROWS = 100_000


def columns(
    database: sqlite3.Connection,
    table: str,
    expressions: Sequence[str],
    *,
    where: str = "true",
    values: Sequence[int] = (),
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield blocks of rows as columns, a tuple for each expression, which is our own text. Raises: sqlite3.Error."""
    query = f'select {", ".join(expressions)} from "{table}" where {where}'  # noqa: S608 - tables are read from the schema
    cursor = database.execute(query, values)
    while block := cursor.fetchmany(BLOCK_ROWS):
        yield list(zip(*block, strict=True))


def pairs(database: sqlite3.Connection, table: str, key: str, value: str) -> dict[int, Any]:
    """Return the values by whole numbers; none where the table, or a column, is not there."""
    if table not in tables_of(database) or not {key, value} <= columns_of(database, table):
        return {}
    blocks = columns(database, table, [whole(key), f'"{value}"'])
    return {one: other for keys, others in blocks for one, other in zip(keys, others, strict=True)}


def whole(name: str, there: Collection[str] | None = None) -> str:
    """Return the expression of a column as a whole number; -1 where it has none, or is not there."""
    return f'coalesce(cast("{name}" as integer), -1)' if there is None or name in there else "-1"
