"""The nodes of runs, so that the runs of one node come from an index."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

UNFOLDED = {"sqlite": "json_each(runs.nodes) n", "postgresql": "json_array_elements_text(runs.nodes) n(value)"}
FILL = "insert into run_nodes select distinct n.value, runs.listed_ns, runs.run_id from runs, {}"


def upgrade() -> None:
    op.create_table(
        "run_nodes",
        sa.Column("node", sa.String(length=255), nullable=False),
        sa.Column("listed_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("node", "listed_ns", "run_id", name=op.f("pk_run_nodes")),
        sqlite_with_rowid=False,
    )
    op.execute(FILL.format(UNFOLDED[op.get_bind().dialect.name]))
