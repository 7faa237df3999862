"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = None
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
        "ingest_batches",
        sa.Column("batch_id", sa.String(length=64), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("received_ns", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("batch_id", name=op.f("pk_ingest_batches")),
    )
    op.create_table(
        "injections",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("node", sa.String(length=255), nullable=False),
        sa.Column("rank", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("started_ns", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ended_ns", sa.BigInteger(), nullable=False),
        sa.Column("strength", sa.Float(), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "kind", "node", "rank", "started_ns", name=op.f("pk_injections")),
    )
    op.create_table(
        "models",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("made_ns", sa.BigInteger(), nullable=False),
        sa.Column("from_ns", sa.BigInteger(), nullable=False),
        sa.Column("to_ns", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("features", sa.JSON(), nullable=False),
        sa.Column("lineage", sa.JSON(), nullable=False),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("coverage", sa.JSON(), nullable=False),
        sa.Column("file_name", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("promoted_ns", sa.BigInteger(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("history", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", "version", name=op.f("pk_models")),
    )
    op.create_index(
        "uq_models_promoted",
        "models",
        ["name"],
        unique=True,
        sqlite_where=sa.text("state = 'promoted'"),
        postgresql_where=sa.text("state = 'promoted'"),
    )
    op.create_table(
        "operations",
        sa.Column("operation_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("made_ns", sa.BigInteger(), nullable=False),
        sa.Column("started_ns", sa.BigInteger(), nullable=True),
        sa.Column("ended_ns", sa.BigInteger(), nullable=True),
        sa.Column("progress", sa.Float(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("owner", sa.String(length=200), nullable=True),
        sa.Column("lease_until_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("operation_id", name=op.f("pk_operations")),
    )
    op.create_index(op.f("ix_operations_state_operation_id"), "operations", ["state", "operation_id"], unique=False)
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
    op.create_table(
        "positions",
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("system", sa.String(length=200), nullable=False),
        sa.Column("reached_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source", "system", name=op.f("pk_positions")),
    )
    op.create_table(
        "pseudonyms",
        sa.Column("pseudonym", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("pseudonym", name=op.f("pk_pseudonyms")),
    )
    op.create_table(
        "ranks",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("node", sa.String(length=255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started_ns", sa.BigInteger(), nullable=False),
        sa.Column("ended_ns", sa.BigInteger(), nullable=True),
        sa.Column("clock_offset_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "rank", name=op.f("pk_ranks")),
    )
    op.create_table(
        "read_files",
        sa.Column("context", sa.String(length=64), nullable=False),
        sa.Column("content", sa.String(length=64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.JSON(), nullable=False),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("context", "content", name=op.f("pk_read_files")),
    )
    op.create_index(op.f("ix_read_files_context_path"), "read_files", ["context", "path"], unique=False)
    op.create_table(
        "requests",
        sa.Column("request_key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("made", sa.JSON(), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("request_key", name=op.f("pk_requests")),
    )
    op.create_index(op.f("ix_requests_created_ns"), "requests", ["created_ns"], unique=False)
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("workload", sa.String(length=200), nullable=False),
        sa.Column("system", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("world_size", sa.Integer(), nullable=True),
        sa.Column("configuration", sa.JSON(), nullable=False),
        sa.Column("job_id", sa.String(length=64), nullable=True),
        sa.Column("nodes", sa.JSON(), nullable=False),
        sa.Column("started_ns", sa.BigInteger(), nullable=True),
        sa.Column("ended_ns", sa.BigInteger(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("command", sa.JSON(), nullable=False),
        sa.Column("software", sa.JSON(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_started_ns"), "runs", ["started_ns"], unique=False)
    op.create_index(op.f("ix_runs_workload_system"), "runs", ["workload", "system"], unique=False)
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secrets")),
    )
    op.create_table(
        "studies",
        sa.Column("study_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("space", sa.JSON(), nullable=False),
        sa.Column("objective", sa.String(length=200), nullable=False),
        sa.Column("unit", sa.String(length=64), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("trials_max", sa.Integer(), nullable=True),
        sa.Column("details", sa.JSON(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("study_id", name=op.f("pk_studies")),
        sa.UniqueConstraint("name", name=op.f("uq_studies_name")),
    )
    op.create_table(
        "trials",
        sa.Column("trial_id", sa.String(length=64), nullable=False),
        sa.Column("study_id", sa.String(length=64), nullable=False),
        sa.Column("configuration", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("objective", sa.Float(), nullable=True),
        sa.Column("owner", sa.String(length=200), nullable=True),
        sa.Column("lease_expires_ns", sa.BigInteger(), nullable=True),
        sa.Column("run_id", sa.String(length=64), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("job", sa.String(length=200), nullable=True),
        sa.Column("checkpoint", sa.Text(), nullable=True),
        sa.Column("outcomes", sa.JSON(), server_default="{}", nullable=False),
        sa.Column("losses", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["studies.study_id"], name=op.f("fk_trials_study_id_studies")),
        sa.PrimaryKeyConstraint("trial_id", name=op.f("pk_trials")),
    )
    op.create_index(op.f("ix_trials_study_id_state"), "trials", ["study_id", "state"], unique=False)
