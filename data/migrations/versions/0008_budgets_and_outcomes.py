"""Budgets and details of studies; a trial's job, checkpoint, outcomes, and how often its lease ran out."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("studies", sa.Column("trials_max", sa.Integer(), nullable=True))
    op.add_column("studies", sa.Column("details", sa.JSON(), nullable=False, server_default="{}"))
    op.add_column("trials", sa.Column("job", sa.String(length=200), nullable=True))
    op.add_column("trials", sa.Column("checkpoint", sa.Text(), nullable=True))
    op.add_column("trials", sa.Column("outcomes", sa.JSON(), nullable=False, server_default="{}"))
    op.add_column("trials", sa.Column("losses", sa.Integer(), nullable=False, server_default="0"))
