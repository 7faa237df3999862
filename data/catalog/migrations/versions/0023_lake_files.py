"""Files of a lake in an object store, and whose turn its work is."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

IS_LIVE, IS_RETIRED = sa.text("retired_ns is null"), sa.text("retired_ns is not null")
IS_DEFINITION = sa.text("retired_ns is null and date = ''")


def upgrade() -> None:
    op.create_table(
        "lake_files",
        sa.Column("key", sa.String(length=400), nullable=False),
        sa.Column("name", sa.String(length=400), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("set_name", sa.String(length=200), nullable=False),
        sa.Column("date", sa.String(length=16), nullable=False),
        sa.Column("first_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_ns", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.String(length=16), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("checksum", sa.String(length=64), nullable=False),
        sa.Column("added_ns", sa.BigInteger(), nullable=False),
        sa.Column("retired_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_lake_files")),
    )
    live, retired = ({f"{base}_where": where for base in ("sqlite", "postgresql")} for where in (IS_LIVE, IS_RETIRED))
    op.create_index("uq_lake_files_name", "lake_files", ["name"], unique=True, **live)
    op.create_index("ix_lake_files_live", "lake_files", ["set_name", "date"], **live)
    defined = {"sqlite_where": IS_DEFINITION, "postgresql_where": IS_DEFINITION}
    op.create_index("ix_lake_files_defined", "lake_files", ["set_name"], **defined)
    op.create_index("ix_lake_files_retired", "lake_files", ["retired_ns"], **retired)
    op.create_table(
        "lake_turns",
        sa.Column("work", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("until_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("work", name=op.f("pk_lake_turns")),
    )
