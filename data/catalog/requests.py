"""Requests that made something, remembered for a day, so that one sent again makes nothing twice."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete

from crosswind.data.catalog import rows, tables
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.request_key import RequestKey

REMEMBERED_NS = 24 * 3600 * 1_000_000_000


class Requests:
    """Remembered requests, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def claim(self, request: RequestKey, now_ns: int) -> tuple[str, ...] | None:
        """The ids that this request made before, or None when it is new; until this session ends, others wait here.

        Raises: InvalidInputError when the key was used for another request.
        """
        table = tables.requests
        self._connection.execute(delete(table).where(table.c.created_ns < now_ns - REMEMBERED_NS))
        row = {"request_key": request.stored, "fingerprint": request.fingerprint, "made": [], "created_ns": now_ns}
        if rows.add_unless_there(self._connection, table, row):
            return None
        stored = rows.fetch(self._connection, table, request_key=request.stored)
        if stored is None or stored["fingerprint"] != request.fingerprint:
            raise used_otherwise(request)
        return tuple(stored["made"])

    def settle(self, request: RequestKey, made: Sequence[str]) -> None:
        """Remembers which ids the claimed request made."""
        rows.change(self._connection, tables.requests, {"request_key": request.stored}, made=list(made))


def used_otherwise(request: RequestKey) -> InvalidInputError:
    """Return the error for a key that was used for another request."""
    return InvalidInputError(f"Idempotency-Key {request.key!r} was used for another request: choose a new one")
