"""Bytes that each user has sent in a day, for quotas."""

from sqlalchemy import Connection, delete

from crosswind.data.catalog import rows, tables

DAY_NS = 86_400_000_000_000
KEPT_DAYS = 7


class Usage:
    """Bytes by user and day, UTC, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, user: str, now_ns: int) -> int:
        """Return the bytes that a user has sent today."""
        row = rows.fetch(self._connection, tables.usage, user=user, day=now_ns // DAY_NS)
        return 0 if row is None else int(row["bytes"])

    def add(self, user: str, now_ns: int, sent_bytes: int) -> None:
        """Count bytes of today; counts of a week ago are forgotten."""
        rows.hold(self._connection, f"usage {user}")
        total = self.of(user, now_ns) + sent_bytes
        rows.upsert(self._connection, tables.usage, {"user": user, "day": now_ns // DAY_NS, "bytes": total})
        self._connection.execute(delete(tables.usage).where(tables.usage.c.day < now_ns // DAY_NS - KEPT_DAYS))
