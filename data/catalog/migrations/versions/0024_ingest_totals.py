"""Totals over all batches, which need no look at each batch; batches by when they came."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

FILL = """
insert into ingest_totals
select 0, count(*), coalesce(sum("rows"), 0), coalesce(sum(skipped), 0) from ingest_batches
"""


def upgrade() -> None:
    op.create_table(
        "ingest_totals",
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("batches", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("slot", name=op.f("pk_ingest_totals")),
    )
    op.create_index("ix_ingest_batches_received_ns", "ingest_batches", ["received_ns"])
    op.execute(FILL)
