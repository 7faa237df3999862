"""Bodies while they arrive: small ones in memory, others in unnamed files, which end with the process.

Senders who are slow hold neither memory nor a place among those whose requests are worked on. Where the files get too
large together, the slowest sender gives way.
"""

import time
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import IO, Self

from anyio import CancelScope
from starlette.types import Receive

from crosswind.data.schema.errors import UnavailableError

MEMORY_BYTES = 64 * 1024  # of one body
DRAINED = 8  # times the limit that is read of a body at most
FAIR_SECONDS = 2.0  # before a sender counts as slow


@dataclass(eq=False)
class Body:
    """A body as far as it has come; `size` counts what was read, also what is too much and was thrown away."""

    spool: "Spool"
    size: int = 0
    is_whole: bool = False
    began: float = field(default_factory=time.monotonic)
    scope: CancelScope = field(default_factory=CancelScope)
    file: IO[bytes] = field(default_factory=lambda: SpooledTemporaryFile(MEMORY_BYTES))  # noqa: SIM115 - closed with the body

    @property
    def bytes_a_second(self) -> float:
        """Return how fast it comes."""
        return self.size / max(1e-3, time.monotonic() - self.began)

    def content(self) -> bytes:
        """Return what has come."""
        self.file.seek(0)
        return self.file.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.file.close()
        self.spool.bodies.discard(self)


class Spool:
    """The bodies of a server that are larger than what memory keeps; of `limit_bytes` together at most."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bodies: set[Body] = set()

    async def read(self, body: Body, receive: Receive, limit_bytes: int) -> None:
        """Read a body until it is whole, too large, or its client has gone.

        More of a too large body is read and thrown away, because many clients read an answer only after sending all.
        Raises: UnavailableError when there is no room for it.
        """
        with body.scope:
            while body.size <= DRAINED * limit_bytes:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                self._take(body, message.get("body", b""), limit_bytes)
                if not message.get("more_body"):
                    body.is_whole = True
                    return
            body.is_whole = True
        if body.scope.cancelled_caught:
            raise UnavailableError("there is no room for this body, which comes too slowly: send it again")

    def _take(self, body: Body, chunk: bytes, limit_bytes: int) -> None:
        if body.size <= limit_bytes:
            if body.size + len(chunk) > MEMORY_BYTES:
                self._make_room(body, len(chunk))
            try:
                body.file.write(chunk)
            except OSError as error:
                raise UnavailableError(f"there is no room for this body: {error.strerror}") from error
        body.size += len(chunk)

    def _make_room(self, body: Body, more: int) -> None:
        """Let the slowest sender give way to this one where there is no room. Raises: UnavailableError."""
        self.bodies.add(body)
        if sum(other.size for other in self.bodies) + more <= self.limit_bytes:
            return
        now = time.monotonic()
        slow = [other for other in self.bodies - {body} if not other.is_whole and now - other.began > FAIR_SECONDS]
        if not slow:
            raise UnavailableError("there is no room for this body now")
        slowest = min(slow, key=lambda other: other.bytes_a_second)
        self.bodies.discard(slowest)
        slowest.scope.cancel()
