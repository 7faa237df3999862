"""Positions in sources that are asked again and again: how far each was read."""

from sqlalchemy import Connection

from crosswind.data.catalog import rows, tables


class Positions:
    """The time up to which each source was read, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, source: str, system: str) -> int | None:
        """The time in ns UTC; None before the first answer."""
        row = rows.fetch(self._connection, tables.positions, source=source, system=system)
        return None if row is None else int(row["reached_ns"])

    def put(self, source: str, system: str, reached_ns: int) -> None:
        """Notes how far it is now."""
        rows.upsert(self._connection, tables.positions, {"source": source, "system": system, "reached_ns": reached_ns})
