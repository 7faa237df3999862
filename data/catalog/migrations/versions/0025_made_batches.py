"""The time at which each batch was made, so that old ones are forgotten; those of files are remembered for ever."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

# As the name of a segment says, or when a request came: of 20 digits, before the year 2255.
FILL = """
update ingest_batches set made_ns = case
    when origin in ('prometheus', 'otlp') then received_ns
    when {is_segment} then cast(substr(origin, 1, 20) as bigint)
end
"""
IS_SEGMENT = {
    "postgresql": "origin ~ '^0[0-8][0-9]{18}-[0-9a-f]{8}[.].+[.]segment$'",
    "sqlite": f"origin glob '0[0-8]{'[0-9]' * 18}-{'[0-9a-f]' * 8}.?*.segment'",
}


def upgrade() -> None:
    op.add_column("ingest_batches", sa.Column("made_ns", sa.BigInteger()))
    fill = FILL.format(is_segment=IS_SEGMENT[op.get_bind().dialect.name])
    op.get_bind().exec_driver_sql(fill)
    op.create_index("ix_ingest_batches_made_ns", "ingest_batches", ["made_ns"])
