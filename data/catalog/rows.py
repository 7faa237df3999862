"""Rows of the catalog's tables, written and read the same way in both databases."""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Select,
    Table,
    TableValuedAlias,
    Text,
    and_,
    bindparam,
    cast,
    column,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.dialects import sqlite

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

LISTED = "listed_rows"


def upsert(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Inserts a row, or replaces the one of the same primary key."""
    connection.execute(_upsert(connection.dialect.name, table, tuple(row)), dict(row))


def upsert_all(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows at once, each in place of the one of the same primary key."""
    if not rows:
        return
    statement = _upsert(connection.dialect.name, table, tuple(rows[0]))
    connection.execute(statement, [dict(row) for row in rows])


def upsert_with(
    connection: Connection, table: Table, names: tuple[str, ...], values: Mapping[str, Any]
) -> "postgresql.Insert | sqlite.Insert":
    """Return the statement that inserts rows of these columns, or sets values of the one of the same primary key."""
    keys = [column.name for column in table.primary_key]
    statement = _insert(connection, table).values({name: bindparam(name) for name in names})
    return statement.on_conflict_do_update(index_elements=keys, set_=dict(values))


def hold(connection: Connection, key: str) -> None:
    """Lets nobody else past this call for the key until the transaction ends; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(key, 0))))


def fetch(connection: Connection, table: Table, **keys: object) -> Mapping[str, Any] | None:
    """The one row with these keys, or None."""
    row = connection.execute(_by_key(table, tuple(keys)), keys).mappings().first()
    return None if row is None else dict(row)


def add(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Inserts a row."""
    connection.execute(insert(table).values(**row))


def add_unless_there(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Inserts a row, or leaves the one of the same primary key; whether it was inserted."""
    statement = _insert(connection, table).values(**row).on_conflict_do_nothing()
    return connection.execute(statement.execution_options(preserve_rowcount=True)).rowcount == 1


def add_those_not_there(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows at once, but for those whose primary key is there."""
    if not rows:
        return
    if connection.dialect.name != "postgresql":
        connection.execute(_insert(connection, table).on_conflict_do_nothing(), [dict(row) for row in rows])
        return
    statement = _insert_listed(table, tuple(rows[0])).on_conflict_do_nothing()
    connection.execute(statement, {LISTED: json.dumps([dict(row) for row in rows])})


def add_all(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows at once, of texts and numbers. Raises: IntegrityError where one is there."""
    if connection.dialect.name != "postgresql" or len(rows) == 1:
        connection.execute(insert(table), [dict(row) for row in rows])
        return
    connection.execute(_insert_listed(table, tuple(rows[0])), {LISTED: json.dumps([dict(row) for row in rows])})


def change(connection: Connection, table: Table, key: Mapping[str, object], **values: object) -> None:
    """Sets columns of the row with this key."""
    where = and_(*(table.c[name] == value for name, value in key.items()))
    connection.execute(update(table).where(where).values(**values))


def among(connection: Connection, column: ColumnElement[str], values: Collection[str]) -> ColumnElement[bool]:
    """Return whether the column has one of these values, however many: they go as one parameter."""
    return column.in_(select(unfolded(connection, literal(sorted(values), JSON)).c.value))


def unfolded(connection: Connection, texts: ColumnElement[Any]) -> TableValuedAlias:
    """Return a JSON list of texts as a table with the column `value`."""
    is_postgresql = connection.dialect.name == "postgresql"
    unfold = func.json_array_elements_text if is_postgresql else func.json_each
    return unfold(texts).table_valued("value")


def gathered(connection: Connection, column: ColumnElement[Any]) -> ColumnElement[str]:
    """The column's values of a group as one list, the text of its JSON: read so, many rows cost a fraction."""
    gather = func.json_agg if connection.dialect.name == "postgresql" else func.json_group_array
    return cast(gather(column), Text)


def _insert(connection: Connection, table: Table) -> "postgresql.Insert | sqlite.Insert":
    return _insert_by(connection.dialect.name, table)


def _insert_by(dialect: str, table: Table) -> "postgresql.Insert | sqlite.Insert":
    if dialect != "postgresql":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 - a tenth of SQLAlchemy, which SQLite does without

    return postgresql.insert(table)


@lru_cache(maxsize=256)  # to build a statement takes several times as long as to execute it
def _upsert(dialect: str, table: Table, names: tuple[str, ...]) -> "postgresql.Insert | sqlite.Insert":
    keys = [column.name for column in table.primary_key]
    statement = _insert_by(dialect, table)
    others = {name: statement.excluded[name] for name in names if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=others)


@lru_cache(maxsize=256)
def _by_key(table: Table, names: tuple[str, ...]) -> Select[Any]:
    return select(table).where(and_(*(table.c[name] == bindparam(name) for name in names)))


@lru_cache(maxsize=256)
def _insert_listed(table: Table, names: tuple[str, ...]) -> "postgresql.Insert":
    """One statement for many rows, a JSON list as one parameter: PostgreSQL's driver sends a list row by row."""
    columns = [column(name, table.c[name].type) for name in names]
    listed = func.json_to_recordset(cast(bindparam(LISTED, type_=Text), JSON)).table_valued(*columns)
    source = select(listed.render_derived(name="listed", with_types=True))
    statement: postgresql.Insert = _insert_by("postgresql", table).from_select(names, source)  # type: ignore[assignment]
    return statement
