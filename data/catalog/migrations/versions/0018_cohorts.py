"""Saved cohorts of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cohorts",
        sa.Column("cohort_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("run_ids", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("conditions", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("owner", sa.String(length=200), nullable=True),
        sa.Column("account", sa.String(length=200), nullable=True),
        sa.Column("shared", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("cohort_id", name=op.f("pk_cohorts")),
    )
    op.create_index(op.f("ix_cohorts_created_ns_cohort_id"), "cohorts", ["created_ns", "cohort_id"], unique=False)
