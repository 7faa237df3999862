"""Sources of studies, and the weights that they had when a trial was suggested."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("studies", sa.Column("sources", sa.JSON()))
    op.add_column("trials", sa.Column("weights", sa.JSON(), server_default="{}", nullable=False))
