"""SQLite files of other tools, plain, gzip or zstd, opened safely: read-only, without running code in them."""

import contextlib
import sqlite3
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.reader.lines import GZIP_MAGIC, head_of
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import BLOCK_BYTES, ZSTD_MAGIC, Bytes, plain_bytes

MAGIC = b"SQLite format 3\0"
PACKED_LIMIT = 1 << 28  # bytes, unpacked


@contextlib.contextmanager
def opened(
    path: Path, report: Report, needed: Collection[str], *, packed_limit: int = PACKED_LIMIT
) -> Iterator[sqlite3.Connection]:
    """Open the database, which somebody else may be writing to; it has these tables.

    A packed one is unpacked next to temporary files, up to the limit, in bytes.

    Raises: UnavailableError; MalformedError, also for SQLite's errors while it is open.
    """
    try:
        with _plain(path, report, packed_limit) as plain, contextlib.closing(_connection(plain)) as database:
            database.execute("pragma trusted_schema = off")
            database.text_factory = lambda text: text.decode(errors="replace")
            if lacking := sorted(set(needed) - tables_of(database)):
                raise MalformedError(f"{path}: has no table {', '.join(lacking)}")
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter when a message quotes damaged names
        raise MalformedError(f"{path}: SQLite says: {error}") from error


def has_tables(path: Path, head: bytes, needed: Collection[str]) -> bool:
    """Return whether a file that begins with `head` is an SQLite file with these tables; never raises."""
    if not plain_bytes(head).startswith(MAGIC):
        return False
    try:
        with opened(path, Report(str(path), ""), needed):
            return True
    except (UnavailableError, MalformedError, OSError):
        return False


def tables_of(database: sqlite3.Connection) -> set[str]:
    """Return the names of its tables, without views, as any query may be behind those."""
    return {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}


def columns_of(database: sqlite3.Connection, table: str) -> set[str]:
    """Return the names of a table's columns."""
    return {name for (name,) in database.execute("select name from pragma_table_info(?)", [table])}


def _connection(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


@contextlib.contextmanager
def _plain(path: Path, report: Report, limit: int) -> Iterator[Path]:
    if not head_of(path).startswith((GZIP_MAGIC, ZSTD_MAGIC)):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder, Bytes(path, report, limit=limit) as stream:
        unpacked = Path(folder) / "unpacked.sqlite"
        with unpacked.open("wb") as file:
            while block := stream.take(BLOCK_BYTES):
                file.write(block)
        if not head_of(unpacked).startswith(MAGIC):
            raise MalformedError(f"{path}: no SQLite file after unpacking")
        yield unpacked
