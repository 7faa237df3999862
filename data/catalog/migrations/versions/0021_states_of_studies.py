"""States of studies: whether they hand out trials."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("studies", sa.Column("state", sa.String(16), server_default="running", nullable=False))
