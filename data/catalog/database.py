"""Opening the catalog's database: SQLite in WAL mode by default, PostgreSQL when several servers share it."""

import os
import random
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.schema import CreateIndex, CreateTable

from crosswind.data.catalog.tables import NUMBER, metadata
from crosswind.data.schema.errors import ConflictError, InvalidInputError, UnavailableError

MIGRATIONS = Path(__file__).parent / "migrations"
FIRST, HEAD = "0009", "0025"  # oldest and newest migration; a test holds them against MIGRATIONS
MIGRATION_LOCK = 0x43524F5357494E44  # "CROSWIND", for PostgreSQL's advisory lock
DRIVERS = {"sqlite": ("", "pysqlite"), "postgresql": ("", "pg8000")}
BUSY_MILLISECONDS = 30_000
BUSY, BUSY_PAUSE_SECONDS = "SQLITE_BUSY", (0.002, 0.02)
NO_ANSWER = (OperationalError, InterfaceError)  # what the drivers raise when the database is not there
REFUSED = "Server refuses SSL"  # of pg8000
REVISION = "version_num varchar(32) not null constraint alembic_version_pkc primary key"  # as Alembic makes the column
# SQLSTATE: it starts or ends, has no connection left, has no room, or the connection broke (PostgreSQL, appendix A)
AWAY = ("57P", "533", "531", "08")
CURRENT = text("select version_num from alembic_version")
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


class DamagedCatalogError(UnavailableError):
    """The catalog's file is damaged: nothing can be stored until somebody has looked after it."""


class OtherVersionError(UnavailableError):
    """The catalog has been migrated by another version of Crosswind: this process writes nothing any more."""


def open_database(url: str) -> Engine:
    """An engine whose tables are those of this version.

    Raises: InvalidInputError for a URL that is none or of another database, UnavailableError when it does not answer,
        DamagedCatalogError when SQLite's file is damaged,
        ConflictError when a newer version of Crosswind wrote it, or one before the first release.
    """
    engine = _engine(url)
    try:
        with engine.begin() as connection:
            _lock(connection)
            _migrate(connection)
    except NO_ANSWER as error:
        raise UnavailableError(f"catalog {engine.url!r} does not open: {error.orig}") from error
    except ConflictError:
        engine.dispose()
        raise
    return engine


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise InvalidInputError(f"catalog {url!r}: expected a URL such as sqlite:////folder/catalog.sqlite") from error
    backend, _, driver = parsed.drivername.partition("+")
    if driver not in DRIVERS.get(backend, ()):
        raise InvalidInputError(f"catalog {parsed!r}: expected sqlite or postgresql, not {parsed.drivername}")
    if backend == "postgresql":
        password = parsed.password or os.environ.get("PGPASSWORD")  # libpq's name; the driver reads no environment
        engine = create_engine(
            parsed.set(drivername="postgresql+pg8000", password=password), pool_pre_ping=True, hide_parameters=True
        )
        event.listen(engine, "handle_error", _say_away)
        event.listen(engine, "do_connect", _Connecting())
        return engine
    engine = create_engine(parsed, connect_args={"timeout": BUSY_MILLISECONDS / 1000}, hide_parameters=True)
    event.listen(engine, "handle_error", _say_damaged)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


class _Connecting:
    """Connects to PostgreSQL: encrypted where the server offers that, and without a look at its certificate.

    So does the driver by itself, but it loads all certificates of this machine for each connection, which takes 20 ms.
    """

    def __init__(self) -> None:
        self._is_offered = True

    def __call__(self, dialect: Any, _record: object, words: Sequence[Any], options: Mapping[str, Any]) -> Any:
        try:
            return dialect.connect(*words, **options, ssl_context=_any_certificate() if self._is_offered else False)
        except dialect.dbapi.Error as error:
            was_offered, self._is_offered = self._is_offered, True  # by now it may be
            if not was_offered or str(error) != REFUSED:
                raise
        self._is_offered = False
        return self(dialect, _record, words, options)


def _any_certificate() -> object:
    import ssl  # noqa: PLC0415 - of no use with SQLite

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file."""
    return f"sqlite:///{path}"


def _say_away(context: ExceptionContext) -> Exception | None:
    """Return one of NO_ANSWER for what PostgreSQL says while it starts, ends or is full."""
    error = context.original_exception
    said = error.args[0] if error.args else None
    if isinstance(said, Mapping) and str(said.get("C", "")).startswith(AWAY):
        return OperationalError(context.statement, None, error)
    return None


def _say_damaged(context: ExceptionContext) -> Exception | None:
    """Return what to do about a damaged file of SQLite."""
    error = context.original_exception
    if not getattr(error, "sqlite_errorname", "").startswith(DAMAGED):
        return None
    path = context.engine.url.database if context.engine is not None else "of SQLite"
    return DamagedCatalogError(
        f"catalog {path} is damaged ({error}): stop what uses it, move it aside with its -wal and -shm, and put back a "
        f"backup or what `sqlite3 {path} .recover | sqlite3 NEW` saves; the lake beside it is untouched"
    )


def _prepare_sqlite(connection: object, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # type: ignore[attr-defined]  # we say BEGIN ourselves, see _begin_sqlite
    cursor = connection.cursor()  # type: ignore[attr-defined]
    _turn_on_log(cursor)
    for pragma in ("synchronous = full", "foreign_keys = on"):
        cursor.execute(f"pragma {pragma}")
    cursor.close()


def _turn_on_log(cursor: Any) -> None:
    """Let SQLite keep a write-ahead log; while somebody writes to a file without one, it refuses that without waiting.

    Raises: sqlite3.OperationalError when that takes them longer than BUSY_MILLISECONDS.
    """
    until = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            cursor.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith(BUSY) or time.monotonic() > until:
                raise
            time.sleep(random.uniform(*BUSY_PAUSE_SECONDS))  # noqa: S311 - so that two do not meet again
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    # The driver's own BEGIN comes late and leaves DDL outside; IMMEDIATE makes writers queue instead of fail.
    connection.exec_driver_sql("begin immediate" if connection.get_execution_options().get("writes", True) else "begin")


def _lock(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})


def _migrate(connection: Connection) -> None:
    current = revision_of(connection)
    if current == HEAD:
        return
    _check_age(connection, current)
    if current is None:
        for table in metadata.sorted_tables:
            connection.execute(CreateTable(table))
            for index in sorted(table.indexes, key=lambda index: index.info[NUMBER]):
                connection.execute(CreateIndex(index))
        connection.execute(text(f"create table alembic_version ({REVISION})"))
        connection.execute(text("insert into alembic_version values (:head)"), {"head": HEAD})
        return
    from alembic import command  # noqa: PLC0415 - half a second that a new or up-to-date catalog does not pay
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    if connection.dialect.name == "postgresql":  # whoever writes has looked at it, see check_revision: they end first
        connection.execute(text("lock table alembic_version in access exclusive mode"))
    command.upgrade(config, "head")


def _check_age(connection: Connection, current: str | None) -> None:
    """Refuses tables that no migration leads on from. Raises: ConflictError."""
    catalog = f"catalog {connection.engine.url!r}"
    if current is not None and current > HEAD:
        raise ConflictError(f"{catalog} is at revision {current}, this version knows {HEAD}: update Crosswind")
    has_tables = not metadata.tables.keys().isdisjoint(inspect(connection).get_table_names())
    if has_tables if current is None else current < FIRST:
        raise ConflictError(
            f"{catalog} was made before the first release ({f'revision {current}' if current else 'no revision'}) and "
            "stays untouched: name an empty folder (CROSSWIND_HOME) or database (CROSSWIND_DATABASE), and ingest again"
        )


def check_revision(connection: Connection) -> None:
    """Refuse to write into tables of another version, and keep them as they are until the transaction ends.

    Raises: OtherVersionError.
    """
    current = connection.execute(CURRENT).scalar()
    if current != HEAD:
        raise OtherVersionError(
            f"catalog {connection.engine.url!r} is at revision {current} by now, this process knows {HEAD}: it writes "
            "nothing until it is started again with the version of Crosswind that the others have"
        )


def revision_of(connection: Connection) -> str | None:
    """Return the migration at which the tables are; None where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(CURRENT).scalar()
