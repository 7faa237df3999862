"""First answers to requests with a key; and an index by which studies are listed."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "first_answers",
        sa.Column("request_key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("lease_until_ns", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("request_key", name=op.f("pk_first_answers")),
    )
    op.create_index(op.f("ix_first_answers_created_ns"), "first_answers", ["created_ns"])
    op.create_index(op.f("ix_studies_created_ns_study_id"), "studies", ["created_ns", "study_id"])
