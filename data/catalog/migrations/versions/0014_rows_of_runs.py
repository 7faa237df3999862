"""The list of runs by an index, cohorts of runs, and what is computed of a run: its verdict and its features."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

COHORT = ("system", "workload", "configuration", "world_size")
RUNS = sa.table(
    "runs",
    *(sa.column(name) for name in ("run_id", "system", "workload", "world_size", "cohort", "reversed_id")),
    *(sa.column(name) for name in ("state", "started_ns", "ended_ns")),
    sa.column("configuration", sa.JSON),
)
VERDICTS = sa.table(
    "run_verdicts",
    *(sa.column(name) for name in ("run_id", "wanted", "made", "due", "changes", "allowed")),
    *(sa.column(name) for name in ("begin_ns", "last_ns")),
)
INDEXES = {
    "ix_runs_listed_ns_run_id": ("listed_ns", "run_id"),
    **{f"ix_runs_{name}_listed_ns_run_id": (name, "listed_ns", "run_id") for name in ("workload", "system", "state")},
    **{f"ix_runs_{name}_listed_ns_run_id": (name, "listed_ns", "run_id") for name in ("job_id", "cohort")},
    "ix_runs_reversed_id": ("reversed_id",),
    "ix_runs_state_ended_ns": ("state", "ended_ns"),
    "ix_runs_workload_state_ended_ns": ("workload", "state", "ended_ns"),
}
AT_ONCE = 5000
DUE_FEATURES = 2


def upgrade() -> None:
    reversible = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
    is_stored = True if op.get_bind().dialect.name == "postgresql" else None  # SQLite adds virtual columns alone
    listed = sa.Computed("coalesce(started_ns, 0)", persisted=is_stored)
    op.add_column("runs", sa.Column("listed_ns", sa.BigInteger(), listed))
    op.add_column("runs", sa.Column("cohort", sa.String(32), server_default="", nullable=False))
    op.add_column("runs", sa.Column("reversed_id", reversible, server_default="", nullable=False))
    op.create_table(
        "run_verdicts",
        sa.Column("run_id", sa.String(64), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("wanted", "made", "due", "changes", "allowed")),
        sa.Column("begin_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_ns", sa.BigInteger(), nullable=False),
        sa.Column("steps", sa.Integer()),
        *(sa.Column(name, sa.Float()) for name in ("step_p50_seconds", "step_mean_seconds", "step_cov_ratio")),
        sa.Column("verdict", sa.String(32)),
        sa.Column("cause", sa.String(64)),
        *(sa.Column(f"{name}_seconds", sa.Float()) for name in ("measured", "expected")),
        *(sa.Column(f"{name}_seconds", sa.Float()) for name in ("excess", "excess_low", "excess_high")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_verdicts")),
    )
    op.create_table(
        "run_features",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("form", sa.String(64), nullable=False),
        sa.Column("features", sa.LargeBinary()),
        sa.Column("explanation", sa.Text()),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_features")),
    )
    _fill(op.get_bind())
    op.drop_index("ix_runs_started_ns", "runs")
    op.drop_index("ix_runs_workload_system", "runs")
    for name, columns in INDEXES.items():
        op.create_index(op.f(name), "runs", list(columns))
    op.create_index(op.f("ix_run_verdicts_last_ns"), "run_verdicts", ["last_ns"])
    for name in ("verdict", "cause", "excess_seconds"):
        op.create_index(op.f(f"ix_run_verdicts_{name}_run_id"), "run_verdicts", [name, "run_id"])
    is_due = sa.text("due > 0")
    op.create_index(
        "ix_run_verdicts_due", "run_verdicts", ["due", "run_id"], sqlite_where=is_due, postgresql_where=is_due
    )


def _fill(connection: sa.Connection) -> None:
    """Give every stored run its cohort, and have the features of those that ended computed."""
    last = ""
    stored = sa.select(*(RUNS.c[name] for name in ("run_id", *COHORT, "state", "started_ns", "ended_ns")))
    while some := connection.execute(stored.where(RUNS.c.run_id > last).order_by(RUNS.c.run_id).limit(AT_ONCE)).all():
        rows = [row._asdict() for row in some]
        last = rows[-1]["run_id"]
        values: dict[str, Any] = {"cohort": sa.bindparam("of_cohort"), "reversed_id": sa.bindparam("backwards")}
        statement = sa.update(RUNS).where(RUNS.c.run_id == sa.bindparam("of_run")).values(**values)
        connection.execute(statement, list(map(_derived, rows)))
        ended = [_due(row) for row in rows if row["state"] != "running"]
        if ended:
            connection.execute(sa.insert(VERDICTS), ended)


def _derived(row: Mapping[str, Any]) -> dict[str, object]:
    return {"of_run": row["run_id"], "of_cohort": _cohort(row), "backwards": row["run_id"][::-1]}


def _cohort(row: Mapping[str, Any]) -> str:
    key = json.dumps([row["system"], row["workload"], dict(row["configuration"]), row["world_size"]], sort_keys=True)
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _due(row: Mapping[str, Any]) -> dict[str, object]:
    begin = row["started_ns"] or 0
    span = {"begin_ns": begin, "last_ns": row["ended_ns"] or begin}
    return {"run_id": row["run_id"], "wanted": 1, "made": 0, "due": DUE_FEATURES, "changes": 0, "allowed": 0, **span}
