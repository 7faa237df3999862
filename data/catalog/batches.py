"""Batches that are remembered, so that none is stored twice, and forgotten once nobody sends them any more."""

from sqlalchemy import Connection, delete, func, select

from crosswind.data.catalog import rows
from crosswind.data.catalog.positions import Positions
from crosswind.data.catalog.tables import ingest_batches as TABLE  # noqa: N812 - as elsewhere

FORGOTTEN = "batches", "forgotten"  # the position up to which they are


class Batches:
    """Remembered batches, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def hold_samples(self) -> bool:
        """Return whether any batch is remembered that put rows into the lake."""
        query = select(TABLE.c.batch_id).where(TABLE.c.made_ns.is_not(None), TABLE.c.rows > 0).limit(1)
        return self._connection.execute(query).first() is not None

    def is_forgotten(self, batch_id: str, made_ns: int) -> bool:
        """Return whether a batch that was made then is not remembered, and may have been stored."""
        if rows.fetch(self._connection, TABLE, batch_id=batch_id) is not None:  # looked at first: both go at once
            return False
        return made_ns <= (self.forgotten_ns() or 0)

    def forgotten_ns(self) -> int | None:
        """Return the time in ns UTC up to which what was made may be forgotten; None where nothing is."""
        return Positions(self._connection).of(*FORGOTTEN)

    def forget(self, before_ns: int, at_most: int) -> int:
        """Forget the oldest of the batches that were made before a time, and return their number."""
        rows.hold(self._connection, "batches forgotten")
        made = select(TABLE.c.made_ns).where(TABLE.c.made_ns < before_ns).order_by(TABLE.c.made_ns).limit(at_most)
        last_ns = self._connection.execute(select(func.max(made.subquery().c.made_ns))).scalar()
        if last_ns is None:
            return 0
        gone = delete(TABLE).where(TABLE.c.made_ns <= last_ns).execution_options(preserve_rowcount=True)
        count = self._connection.execute(gone).rowcount
        Positions(self._connection).put(*FORGOTTEN, max(last_ns, self.forgotten_ns() or 0))
        return count
