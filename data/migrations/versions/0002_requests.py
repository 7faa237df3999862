"""Requests that made something, so that one sent again makes nothing twice."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "requests",
        sa.Column("request_key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("made", sa.JSON(), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("request_key", name=op.f("pk_requests")),
    )
    op.create_index(op.f("ix_requests_created_ns"), "requests", ["created_ns"], unique=False)
