"""Injected faults in the catalog."""

from collections.abc import Collection

from sqlalchemy import Connection, select

from crosswind.data.catalog import rows, tables
from crosswind.data.schema.injection import INJECTED_KEY, Injected

AT_ONCE = 500  # names in one question; databases take a limited number


class Injections:
    """The faults injected into runs, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, injected: Injected) -> None:
        """Stores a fault; the same one again changes nothing but its end."""
        rows.upsert(self._connection, tables.injections, rows.row_of(injected))

    def of_runs(self, run_ids: Collection[str]) -> list[Injected]:
        """The faults of these runs, by run and time."""
        table, names = tables.injections, sorted(run_ids)
        order = [table.c[name] for name in ("run_id", "started_ns", *INJECTED_KEY[1:-1])]
        faults: list[Injected] = []
        for start in range(0, len(names), AT_ONCE):
            query = select(table).where(table.c.run_id.in_(names[start : start + AT_ONCE])).order_by(*order)
            faults += [Injected(**row) for row in self._connection.execute(query).mappings()]
        return faults
