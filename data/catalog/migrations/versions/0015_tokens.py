"""Tokens: who may ask, for what, and until when."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("token_id", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("use", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("user", sa.String(length=200)),
        sa.Column("accounts", sa.JSON(), nullable=False),
        sa.Column("system", sa.String(length=200)),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_ns", sa.BigInteger(), nullable=False),
        sa.Column("revoked_ns", sa.BigInteger()),
        sa.Column("used_ns", sa.BigInteger()),
        sa.Column("parent_id", sa.String(length=64)),
        sa.PrimaryKeyConstraint("token_id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
    )
    op.create_index(op.f("ix_tokens_expires_ns"), "tokens", ["expires_ns"], unique=False)
    op.create_index(op.f("ix_tokens_parent_id"), "tokens", ["parent_id"], unique=False)
