"""The tables of events and webhooks; as all tables, they need a migration."""

from sqlalchemy import JSON, BigInteger, Column, Float, Index, Integer, String, Table, Text

from crosswind.data.catalog.tables import metadata

events = Table(
    "events",
    metadata,
    Column("event_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at_ns", BigInteger, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("run_id", String(64)),
    Column("study_id", String(64)),
    Column("trial_id", String(64)),
    Column("system", String(200)),
    Column("details", JSON, nullable=False),
    Index(None, "run_id"),
    Index(None, "study_id"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("webhook_id", String(64), primary_key=True),
    Column("url", Text, nullable=False),
    Column("conditions", JSON, nullable=False),
    Column("secret", Text, nullable=False),
    Column("owner", JSON, nullable=False),
    Column("owner_mark", String(16), nullable=False),
    Column("token_id", String(64)),
    Column("created_ns", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("failing_since_ns", BigInteger),
    Column("next_try_ns", BigInteger, nullable=False),
    Column("lease_until_ns", BigInteger, nullable=False),
    Column("disabled_ns", BigInteger),
    Column("disabled_reason", Text),
    Index(None, "owner_mark"),
)

deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("delivery_id", String(64), primary_key=True),
    Column("webhook_id", String(64), nullable=False),
    Column("event_id", BigInteger, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("status", Integer),
    Column("error", Text),
    Column("seconds", Float, nullable=False),
    Index(None, "webhook_id", "delivery_id"),
)
