"""The tables of a lake in an object store; as all tables, they need a migration."""

from sqlalchemy import BigInteger, Column, Index, String, Table, text

from crosswind.data.catalog.tables import metadata

IS_LIVE, IS_RETIRED = text("retired_ns is null"), text("retired_ns is not null")
IS_DEFINITION = text("retired_ns is null and date = ''")

lake_files = Table(
    "lake_files",
    metadata,
    Column("key", String(400), primary_key=True),
    Column("name", String(400), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("set_name", String(200), nullable=False),
    Column("date", String(16), nullable=False),
    Column("first_ns", BigInteger, nullable=False),
    Column("last_ns", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("columns", String(16), nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("checksum", String(64), nullable=False),
    Column("added_ns", BigInteger, nullable=False),
    Column("retired_ns", BigInteger),
    Index("uq_lake_files_name", "name", unique=True, sqlite_where=IS_LIVE, postgresql_where=IS_LIVE),
    Index("ix_lake_files_live", "set_name", "date", sqlite_where=IS_LIVE, postgresql_where=IS_LIVE),
    Index("ix_lake_files_defined", "set_name", sqlite_where=IS_DEFINITION, postgresql_where=IS_DEFINITION),
    Index("ix_lake_files_retired", "retired_ns", sqlite_where=IS_RETIRED, postgresql_where=IS_RETIRED),
)

lake_turns = Table(
    "lake_turns",
    metadata,
    Column("work", String(64), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("until_ns", BigInteger, nullable=False),
)
