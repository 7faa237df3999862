"""Owners of runs and studies, who may see them, what was done to them, and what their owners sent."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table, owner in (("runs", "user"), ("studies", "owner")):
        op.add_column(table, sa.Column(owner, sa.String(length=200), nullable=True))
        op.add_column(table, sa.Column("account", sa.String(length=200), nullable=True))
        op.add_column(table, sa.Column("shared", sa.Boolean(), server_default=sa.false(), nullable=False))
    for owner in ("user", "account"):
        op.create_index(op.f(f"ix_runs_{owner}_listed_ns_run_id"), "runs", [owner, "listed_ns", "run_id"])
    where = {"sqlite_where": sa.text("shared = 1"), "postgresql_where": sa.text("shared")}
    op.create_index("ix_runs_shared", "runs", ["listed_ns", "run_id"], **where)
    op.create_table(
        "audit",
        sa.Column("entry_id", sa.String(length=64), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.String(length=200), nullable=False),
        sa.Column("act", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("entry_id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_at_ns"), "audit", ["at_ns"], unique=False)
    op.create_table(
        "usage",
        sa.Column("user", sa.String(length=200), nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user", "day", name=op.f("pk_usage")),
    )
