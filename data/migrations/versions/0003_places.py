"""Places of jobs and ranks: the nodes that they were on, and when."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "allocations",
        sa.Column("system", sa.String(length=200), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=False),
        sa.Column("node", sa.String(length=255), nullable=False),
        sa.Column("restart_count", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sampled_as", sa.String(length=255), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("array_id", sa.String(length=64), nullable=True),
        sa.Column("uid", sa.BigInteger(), nullable=True),
        sa.Column("started_ns", sa.BigInteger(), nullable=True),
        sa.Column("ended_ns", sa.BigInteger(), nullable=True),
        sa.Column("gpus", sa.JSON(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("system", "job_id", "node", "restart_count", name=op.f("pk_allocations")),
    )
    op.create_index(op.f("ix_allocations_job_id"), "allocations", ["job_id"], unique=False)
    op.create_index(op.f("ix_allocations_sampled_as"), "allocations", ["sampled_as"], unique=False)
    op.create_table(
        "placements",
        sa.Column("system", sa.String(length=200), nullable=False),
        sa.Column("node", sa.String(length=255), nullable=False),
        sa.Column("pid", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start_ticks", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("sampled_as", sa.String(length=255), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=True),
        sa.Column("step_id", sa.String(length=64), nullable=True),
        sa.Column("run_id", sa.String(length=64), nullable=True),
        sa.Column("rank", sa.Integer(), nullable=True),
        sa.Column("local_rank", sa.Integer(), nullable=True),
        sa.Column("world_size", sa.Integer(), nullable=True),
        sa.Column("started_ns", sa.BigInteger(), nullable=True),
        sa.Column("ended_ns", sa.BigInteger(), nullable=True),
        sa.Column("gpus", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("system", "node", "pid", "start_ticks", name=op.f("pk_placements")),
    )
    op.create_index(op.f("ix_placements_job_id"), "placements", ["job_id"], unique=False)
    op.create_index(op.f("ix_placements_run_id"), "placements", ["run_id"], unique=False)
