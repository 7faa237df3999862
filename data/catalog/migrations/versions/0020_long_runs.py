"""Runs of more than a week by their end: others are looked for among those that ended within a week."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

IS_LONG = sa.text("last_ns - begin_ns > 604800000000000")


def upgrade() -> None:
    op.create_index("ix_run_verdicts_long", "run_verdicts", ["last_ns"], sqlite_where=IS_LONG, postgresql_where=IS_LONG)
