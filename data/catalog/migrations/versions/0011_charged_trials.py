"""Trials that count for a study's budget: those imported before, which nobody ever leased, do not."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TRIALS = sa.table("trials", *(sa.column(name) for name in ("owner", "state", "charged")))
ENDED = ("done", "pruned", "infeasible", "failed")


def upgrade() -> None:
    op.add_column("trials", sa.Column("charged", sa.Boolean(), server_default=sa.true(), nullable=False))
    imported = TRIALS.c.owner.is_(None) & TRIALS.c.state.in_(ENDED)
    op.get_bind().execute(sa.update(TRIALS).where(imported).values(charged=sa.false()))
