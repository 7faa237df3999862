"""Faults that the lab injected into runs."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "injections",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("node", sa.String(length=255), nullable=False),
        sa.Column("rank", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("started_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ended_ns", sa.BigInteger(), nullable=False),
        sa.Column("strength", sa.Float(), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "kind", "node", "rank", "started_ns", name=op.f("pk_injections")),
    )
