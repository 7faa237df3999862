"""The identity of the lake that a catalog's rows are in, by which two lakes on one catalog are told apart."""

from sqlalchemy import Connection, delete, select

from crosswind.data.catalog import rows
from crosswind.data.catalog.lake.tables import lake_turns as TABLE  # noqa: N812 - as elsewhere

OBJECTS, FOLDER = "identity", "folder identity"  # of a lake in an object store, and of one in a folder


class LakeIdentity:
    """The identity, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, kind: str) -> str | None:
        """Return the identity of the lake of this kind; None before it has one."""
        return self._connection.execute(select(TABLE.c.owner).where(TABLE.c.work == kind)).scalar()

    def settle(self, kind: str, identity: str) -> str:
        """Return the identity of the lake, which is this one unless it has another; others wait meanwhile."""
        rows.add_unless_there(self._connection, TABLE, {"work": kind, "owner": identity, "until_ns": 0})
        return str(self.of(kind))

    def forget(self, kind: str) -> None:
        """Let there be no lake of this kind."""
        self._connection.execute(delete(TABLE).where(TABLE.c.work == kind))
