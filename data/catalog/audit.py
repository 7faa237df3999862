"""The audit trail: acts on rows of somebody and on names, by whom, and when."""

import time
from collections.abc import Mapping
from dataclasses import asdict

from sqlalchemy import Connection, and_, delete, select

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.keyset import part_of
from crosswind.data.schema.access import AUDIT_KEPT_DAYS, AuditEntry
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import new_ulid

DAY_NS = 86_400_000_000_000


class Audit:
    """The audit trail, over one connection; entries are added and grow old, and nothing changes them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, who: str, act: str, subject: str, **details: str | int | bool | None) -> None:
        """Note an act, together with what else the session writes, or not at all."""
        entry = AuditEntry(new_ulid(), time.time_ns(), who[:200], act, subject[:255], details)
        rows.add(self._connection, tables.audit, asdict(entry))

    def find(self, wanted: Mapping[str, str | None], part: Part, *, since_ns: int = 0) -> list[AuditEntry]:
        """Return a part of the entries of this who, act or subject, in the order of their making."""
        table = tables.audit
        conditions = [table.c[name] == value for name, value in wanted.items() if value is not None]
        query = select(table).where(and_(table.c.at_ns >= since_ns, *conditions))
        chosen = self._connection.execute(part_of(query, part, table.c.entry_id))
        return [AuditEntry(**row) for row in chosen.mappings()]

    def forget(self, now_ns: int, kept_days: int = AUDIT_KEPT_DAYS) -> None:
        """Remove entries that are older than so many days."""
        self._connection.execute(delete(tables.audit).where(tables.audit.c.at_ns < now_ns - kept_days * DAY_NS))
