"""Positions in sources that are asked again and again: how far each was read."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "positions",
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("system", sa.String(length=200), nullable=False),
        sa.Column("reached_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source", "system", name=op.f("pk_positions")),
    )
