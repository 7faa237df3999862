"""Injected faults in the catalog."""

from collections.abc import Collection
from dataclasses import asdict

from sqlalchemy import Connection, select

from crosswind.data.catalog import rows, tables
from crosswind.data.schema.injection import INJECTED_KEY, Injected


class Injections:
    """The faults injected into runs, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, injected: Injected) -> None:
        """Stores a fault; the same one again changes nothing but its end."""
        rows.upsert(self._connection, tables.injections, asdict(injected))

    def of_runs(self, run_ids: Collection[str]) -> list[Injected]:
        """The faults of these runs, by run and time."""
        table = tables.injections
        order = [table.c[name] for name in ("run_id", "started_ns", *INJECTED_KEY[1:-1])]
        query = select(table).where(rows.among(self._connection, table.c.run_id, run_ids)).order_by(*order)
        return [Injected(**row) for row in self._connection.execute(query).mappings()]
