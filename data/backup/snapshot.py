"""A catalog as it was at one instant, as a file of SQLite, and into a catalog again."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, delete, func, insert, select, text

from crosswind.data.catalog.database import open_database, sqlite_url
from crosswind.data.catalog.lake.tables import lake_files, lake_turns
from crosswind.data.catalog.tables import ingest_batches, metadata
from crosswind.data.files import PRIVATE_FILE
from crosswind.data.schema.errors import MalformedError

CHUNK_ROWS = 1000
WAIT_SECONDS = 30.0
Listed = TypeVar("Listed")


def snapshot(engine: Engine, path: Path, listing: Callable[[], Listed]) -> Listed:
    """Write the catalog to a new file, and return what `listing` returns for the same instant: nobody writes then.

    Only that instant keeps writers waiting, not the copying.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))
    if engine.dialect.name == "sqlite":
        return _of_sqlite(str(engine.url.database), path, listing)
    with _instant(engine, listing) as (reading, listed):
        _copy(reading, path)
    return listed


def _of_sqlite(database: str, path: Path, listing: Callable[[], Listed]) -> Listed:
    """Copy a file of SQLite by its own backup, which sees what the reading transaction sees."""
    with (
        closing(sqlite3.connect(database, timeout=WAIT_SECONDS, isolation_level=None)) as writing,
        closing(sqlite3.connect(database, timeout=WAIT_SECONDS, isolation_level=None)) as reading,
    ):
        writing.execute("begin immediate")
        reading.execute("begin")
        reading.execute("select count(*) from sqlite_master").fetchone()
        listed = listing()
        writing.execute("rollback")
        with closing(sqlite3.connect(path)) as copy:
            reading.backup(copy)
            copy.execute("pragma journal_mode = delete")
    return listed


@contextmanager
def _instant(engine: Engine, listing: Callable[[], Listed]) -> Iterator[tuple[Connection, Listed]]:
    """Yield a connection that sees one instant, and what the listing returns for it (PostgreSQL)."""
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as reading:
        with engine.begin() as writing:
            writing.execute(text(f"lock table {ingest_batches.name} in share mode"))
            reading.execute(select(func.count()).select_from(ingest_batches))  # the snapshot is of this moment
            listed = listing()
        yield reading, listed


def _copy(reading: Connection, path: Path) -> None:
    engine = open_database(sqlite_url(path))
    try:
        with engine.begin() as writing:
            copy_rows(reading, writing)
    finally:
        engine.dispose()
    with closing(sqlite3.connect(path)) as copy:
        copy.execute("pragma journal_mode = delete")  # all in one file


def copy_rows(reading: Connection, writing: Connection) -> None:
    """Copy every row of every table of ours, parents first, into tables that are empty."""
    writing.execute(delete(lake_turns))
    for table in metadata.sorted_tables:
        stored = [column for column in table.c if column.computed is None]
        rows = reading.execution_options(stream_results=True).execute(select(*stored)).mappings()
        while chunk := rows.fetchmany(CHUNK_ROWS):
            writing.execute(insert(table), [dict(row) for row in chunk])


def forget_objects(path: Path) -> None:
    """Remove from the file of a catalog which objects its lake is: a backup has their content."""
    with closing(sqlite3.connect(path)) as connection:
        for table in (lake_files, lake_turns):
            connection.execute(f"delete from {table.name}")  # noqa: S608 - our own names
        connection.commit()


def check_snapshot(path: Path) -> None:
    """Check the file of a catalog. Raises: MalformedError."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            [(said,)] = connection.execute("pragma quick_check(1)").fetchall()
            broken = connection.execute("pragma foreign_key_check").fetchone()
    except sqlite3.DatabaseError as error:
        raise MalformedError(f"{path.name}: {error}") from error
    if said != "ok" or broken:
        raise MalformedError(f"{path.name}: {said if said != 'ok' else f'a row of {broken[0]} refers to none'}")


def is_empty(engine: Engine) -> bool:
    """Return whether no table of ours has a row, but for what says which lake it is, as opening a store notes."""
    with engine.connect() as connection:
        tables = [table for table in metadata.sorted_tables if table is not lake_turns]
        return not any(connection.execute(select(table).limit(1)).first() is not None for table in tables)
