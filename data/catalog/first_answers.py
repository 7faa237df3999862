"""First answers to requests with a key, kept for a day, so that one sent again gets the same answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, delete, update

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.requests import REMEMBERED_NS, used_otherwise
from crosswind.data.schema.errors import ConflictError
from crosswind.data.schema.request_key import RequestKey

TABLE = tables.first_answers
LEASE_NS = 60 * 1_000_000_000  # after which a request without an answer counts as lost with its server


class InProgressError(ConflictError):
    """The request is being answered: send it again in a moment."""


@dataclass(frozen=True)
class FirstAnswer:
    """An answer over HTTP: status, header fields and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class FirstAnswers:
    """Answers to requests with a key, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def claim(self, request: RequestKey, now_ns: int) -> FirstAnswer | None:
        """Return the first answer to this request; None where the caller is now to give it.

        Raises: InvalidInputError when the key was used for another request, InProgressError.
        """
        self._connection.execute(delete(TABLE).where(TABLE.c.created_ns < now_ns - REMEMBERED_NS))
        times = {"created_ns": now_ns, "lease_until_ns": now_ns + LEASE_NS}
        row = {"request_key": request.stored, "fingerprint": request.fingerprint, "headers": {}, **times}
        if rows.add_unless_there(self._connection, TABLE, row):
            return None
        stored = rows.fetch(self._connection, TABLE, request_key=request.stored)
        if stored is not None and stored["fingerprint"] != request.fingerprint:
            raise used_otherwise(request)
        if stored is not None and stored["status"] is not None:
            return FirstAnswer(stored["status"], stored["headers"], stored["body"])
        if stored is None or not self._take_over(request, now_ns):
            raise InProgressError(f"the request with Idempotency-Key {request.key!r} is in progress: send it again")
        return None

    def settle(self, request: RequestKey, answer: FirstAnswer) -> None:
        """Keep the answer to a claimed request, unless somebody else was first."""
        values = {"status": answer.status, "headers": dict(answer.headers), "body": answer.body}
        self._connection.execute(update(TABLE).where(_is_open(request)).values(**values))

    def release(self, request: RequestKey) -> None:
        """Free the key of a claimed request that changed nothing."""
        self._connection.execute(delete(TABLE).where(_is_open(request)))

    def _take_over(self, request: RequestKey, now_ns: int) -> bool:
        """Return whether the caller answers from now on in place of a server that was killed."""
        lost = and_(_is_open(request), TABLE.c.lease_until_ns < now_ns)
        taken = update(TABLE).where(lost).values(lease_until_ns=now_ns + LEASE_NS)
        return bool(self._connection.execute(taken.execution_options(preserve_rowcount=True)).rowcount)


def _is_open(request: RequestKey) -> ColumnElement[bool]:
    is_it = TABLE.c.request_key == request.stored
    return and_(is_it, TABLE.c.fingerprint == request.fingerprint, TABLE.c.status.is_(None))
