"""The catalog's tables. A change here needs a migration in data/catalog/migrations/versions."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Computed,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    event,
    false,
    text,
    true,
)

NUMBER = "number"  # in the `info` of an index: its place among those of its table


@event.listens_for(Index, "after_parent_attach")
def _number(index: Index, table: Table) -> None:
    """Note the place: planners take the later one of two indexes that serve alike, and a set has no order."""
    index.info[NUMBER] = len(table.indexes)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Each with an index that serves the list's order.
LISTED_BY = ("workload", "system", "state", "job_id", "cohort", "user", "account")
# The end of an id is the beginning of the id reversed: a range of an index, by bytes and not by a language's order.
REVERSED = String(64).with_variant(String(64, collation="C"), "postgresql")

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("workload", String(200), nullable=False),
    Column("system", String(200), nullable=False),
    Column("state", String(16), nullable=False),
    Column("world_size", Integer),
    Column("configuration", JSON, nullable=False),
    Column("job_id", String(64)),
    Column("nodes", JSON, nullable=False),
    Column("started_ns", BigInteger),
    Column("ended_ns", BigInteger),
    Column("exit_code", Integer),
    Column("command", JSON, nullable=False),
    Column("software", JSON, nullable=False),
    Column("tags", JSON, nullable=False),
    Column("facts", JSON, nullable=False, server_default="{}"),
    Column("user", String(200)),
    Column("account", String(200)),
    Column("shared", Boolean, nullable=False, server_default=false()),
    Column("listed_ns", BigInteger, Computed("coalesce(started_ns, 0)", persisted=True)),  # by which runs are listed
    Column("cohort", String(32), nullable=False, server_default=""),
    Column("reversed_id", REVERSED, nullable=False, server_default=""),
    *(Index(None, *names, "listed_ns", "run_id") for names in ((), *zip(LISTED_BY, strict=True))),
    Index("ix_runs_shared", "listed_ns", "run_id", sqlite_where=text("shared = 1"), postgresql_where=text("shared")),
    Index(None, "reversed_id"),
    Index(None, "state", "ended_ns"),
    Index(None, "workload", "state", "ended_ns"),
)

IS_DUE = text("due > 0")
LONG_NS = 604_800_000_000_000  # a week, beyond which a run is found by an index of its own
IS_LONG = text(f"last_ns - begin_ns > {LONG_NS}")
run_verdicts = Table(
    "run_verdicts",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("wanted", Integer, nullable=False),
    Column("made", Integer, nullable=False),
    Column("due", Integer, nullable=False),
    Column("changes", Integer, nullable=False),
    Column("allowed", Integer, nullable=False),
    Column("begin_ns", BigInteger, nullable=False),
    Column("last_ns", BigInteger, nullable=False),
    Column("steps", Integer),
    *(Column(name, Float) for name in ("step_p50_seconds", "step_mean_seconds", "step_cov_ratio")),
    Column("verdict", String(32)),
    Column("cause", String(64)),
    *(Column(f"{name}_seconds", Float) for name in ("measured", "expected", "excess", "excess_low", "excess_high")),
    Index(None, "last_ns"),
    *(Index(None, name, "run_id") for name in ("verdict", "cause", "excess_seconds")),
    Index("ix_run_verdicts_due", "due", "run_id", sqlite_where=IS_DUE, postgresql_where=IS_DUE),
    Index("ix_run_verdicts_long", "last_ns", sqlite_where=IS_LONG, postgresql_where=IS_LONG),
)

run_nodes = Table(  # a run's place in the list of each of its nodes
    "run_nodes",
    metadata,
    Column("node", String(255), primary_key=True),
    Column("listed_ns", BigInteger, primary_key=True, autoincrement=False),
    Column("run_id", String(64), primary_key=True),
    sqlite_with_rowid=False,
)

run_features = Table(  # beside the verdicts, whose rows change often: SQLite writes a row whole
    "run_features",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("form", String(64), nullable=False),
    Column("features", LargeBinary),
    Column("explanation", Text),
)

ranks = Table(
    "ranks",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("rank", Integer, primary_key=True),
    Column("node", String(255), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started_ns", BigInteger, nullable=False),
    Column("ended_ns", BigInteger),
    Column("clock_offset_ns", BigInteger),
)

pseudonyms = Table(
    "pseudonyms",
    metadata,
    Column("pseudonym", String(64), primary_key=True),
    Column("name", Text, nullable=False),
)

secrets = Table(
    "secrets",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

allocations = Table(
    "allocations",
    metadata,
    Column("system", String(200), primary_key=True),
    Column("job_id", String(64), primary_key=True),
    Column("node", String(255), primary_key=True),
    Column("restart_count", Integer, primary_key=True, autoincrement=False),
    Column("sampled_as", String(255), nullable=False),
    Column("source", String(16), nullable=False),
    Column("array_id", String(64)),
    Column("uid", BigInteger),
    Column("started_ns", BigInteger),
    Column("ended_ns", BigInteger),
    Column("gpus", JSON, nullable=False),
    Column("cpus", Integer),
    Index(None, "job_id"),
    Index(None, "sampled_as"),
)

placements = Table(
    "placements",
    metadata,
    Column("system", String(200), primary_key=True),
    Column("node", String(255), primary_key=True),
    Column("pid", Integer, primary_key=True, autoincrement=False),
    Column("start_ticks", BigInteger, primary_key=True, autoincrement=False),
    Column("sampled_as", String(255), nullable=False),
    Column("source", String(16), nullable=False),
    Column("job_id", String(64)),
    Column("step_id", String(64)),
    Column("run_id", String(64)),
    Column("rank", Integer),
    Column("local_rank", Integer),
    Column("world_size", Integer),
    Column("started_ns", BigInteger),
    Column("ended_ns", BigInteger),
    Column("gpus", JSON, nullable=False),
    Index(None, "job_id"),
    Index(None, "run_id"),
)

injections = Table(
    "injections",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("kind", String(64), primary_key=True),
    Column("node", String(255), primary_key=True),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    Column("started_ns", BigInteger, primary_key=True, autoincrement=False),
    Column("ended_ns", BigInteger, nullable=False),
    Column("strength", Float, nullable=False),
    Column("unit", String(64), nullable=False),
)

studies = Table(
    "studies",
    metadata,
    Column("study_id", String(64), primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("space", JSON, nullable=False),
    Column("objective", String(200), nullable=False),
    Column("unit", String(64), nullable=False),
    Column("seed", Integer, nullable=False),
    Column("created_ns", BigInteger, nullable=False),
    Column("trials_max", Integer),
    Column("details", JSON, nullable=False, server_default="{}"),
    Column("sources", JSON),
    Column("owner", String(200)),
    Column("account", String(200)),
    Column("shared", Boolean, nullable=False, server_default=false()),
    Column("state", String(16), nullable=False, server_default="running"),
    Index(None, "created_ns", "study_id"),
)

trials = Table(
    "trials",
    metadata,
    Column("trial_id", String(64), primary_key=True),
    Column("study_id", String(64), ForeignKey("studies.study_id"), nullable=False),
    Column("configuration", JSON, nullable=False),
    Column("state", String(16), nullable=False),
    Column("objective", Float),
    Column("owner", String(200)),
    Column("lease_expires_ns", BigInteger),
    Column("run_id", String(64)),
    Column("reason", Text),
    Column("job", String(200)),
    Column("checkpoint", Text),
    Column("outcomes", JSON, nullable=False, server_default="{}"),
    Column("losses", Integer, nullable=False, server_default="0"),
    Column("weights", JSON, nullable=False, server_default="{}"),
    Column("charged", Boolean, nullable=False, server_default=true()),
    Index(None, "study_id", "state"),
)

reports = Table(
    "reports",
    metadata,
    Column("study_id", String(64), ForeignKey("studies.study_id"), primary_key=True),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("trial_id", String(64), ForeignKey("trials.trial_id"), primary_key=True),
    Column("value", Float, nullable=False),
    Index(None, "trial_id"),
)

ingest_batches = Table(
    "ingest_batches",
    metadata,
    Column("batch_id", String(64), primary_key=True),
    Column("origin", Text, nullable=False),
    Column("received_ns", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("skipped", BigInteger, nullable=False),
    Column("made_ns", BigInteger),  # after which it is forgotten some day; null: never
    Index(None, "received_ns"),
    Index(None, "made_ns"),
)

ingest_totals = Table(  # the sums of all slots are those over all batches
    "ingest_totals",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("batches", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("skipped", BigInteger, nullable=False),
)

read_files = Table(
    "read_files",
    metadata,
    Column("context", String(64), primary_key=True),
    Column("content", String(64), primary_key=True),
    Column("path", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("rows", JSON, nullable=False),
    Column("parts", JSON, nullable=False),
    Index(None, "context", "path"),
)

positions = Table(
    "positions",
    metadata,
    Column("source", String(64), primary_key=True),
    Column("system", String(200), primary_key=True),
    Column("reached_ns", BigInteger, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("request_key", String(255), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("made", JSON, nullable=False),
    Column("created_ns", BigInteger, nullable=False),
    Index(None, "created_ns"),
)

first_answers = Table(
    "first_answers",
    metadata,
    Column("request_key", String(255), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("created_ns", BigInteger, nullable=False),
    Column("lease_until_ns", BigInteger, nullable=False),
    Column("status", Integer),
    Column("headers", JSON, nullable=False),
    Column("body", LargeBinary),
    Index(None, "created_ns"),
)

IS_PROMOTED = text("state = 'promoted'")
models = Table(
    "models",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("state", String(16), nullable=False),
    Column("made_ns", BigInteger, nullable=False),
    Column("from_ns", BigInteger, nullable=False),
    Column("to_ns", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("features", JSON, nullable=False),
    Column("lineage", JSON, nullable=False),
    Column("metrics", JSON, nullable=False),
    Column("coverage", JSON, nullable=False),
    Column("file_name", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("promoted_ns", BigInteger),
    Column("note", Text, nullable=False),
    Column("history", JSON, nullable=False),
    Index("uq_models_promoted", "name", unique=True, sqlite_where=IS_PROMOTED, postgresql_where=IS_PROMOTED),
)

operations = Table(
    "operations",
    metadata,
    Column("operation_id", String(64), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("arguments", JSON, nullable=False),
    Column("state", String(16), nullable=False),
    Column("made_ns", BigInteger, nullable=False),
    Column("started_ns", BigInteger),
    Column("ended_ns", BigInteger),
    Column("progress", Float, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("result", JSON, nullable=False),
    Column("error", Text),
    Column("owner", String(200)),
    Column("lease_until_ns", BigInteger),
    Index(None, "state", "operation_id"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("token_id", String(64), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("use", String(16), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("name", String(255), nullable=False),
    Column("role", String(16), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("user", String(200)),
    Column("accounts", JSON, nullable=False),
    Column("system", String(200)),
    Column("created_by", String(255), nullable=False),
    Column("created_ns", BigInteger, nullable=False),
    Column("expires_ns", BigInteger, nullable=False),
    Column("revoked_ns", BigInteger),
    Column("used_ns", BigInteger),
    Column("parent_id", String(64)),
    Index(None, "parent_id"),
    Index(None, "expires_ns"),
)

audit = Table(
    "audit",
    metadata,
    Column("entry_id", String(64), primary_key=True),
    Column("at_ns", BigInteger, nullable=False),
    Column("who", String(200), nullable=False),
    Column("act", String(64), nullable=False),
    Column("subject", String(255), nullable=False),
    Column("details", JSON, nullable=False),
    Index(None, "at_ns"),
)

usage = Table(
    "usage",
    metadata,
    Column("user", String(200), primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("bytes", BigInteger, nullable=False),
)

cohorts = Table(
    "cohorts",
    metadata,
    Column("cohort_id", String(64), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("created_ns", BigInteger, nullable=False),
    Column("run_ids", JSON(none_as_null=True)),
    Column("conditions", JSON(none_as_null=True)),
    Column("note", Text, nullable=False),
    Column("owner", String(200)),
    Column("account", String(200)),
    Column("shared", Boolean, nullable=False, server_default=false()),
    Index(None, "created_ns", "cohort_id"),
)
