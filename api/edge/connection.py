"""A connection: uvicorn's, over httptools, with limits on what a client sends and on the time that it takes.

uvicorn bounds neither the head of a request nor the time in which it arrives, queues any number of pipelined requests,
and waits without end for a client that does not read. Everything else is uvicorn's own.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from crosswind.api.edge.edge import GUEST_SECONDS, Edge, client_key
from crosswind.api.peer import PEER, Peer
from crosswind.api.problems import ADDRESS, BUSY, HEAD, MALFORMED, SLOW, Kind

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

LINGER_SECONDS = 2.0  # after a refusal, so that a client that still sends gets to read it
UNPARSED_BYTES = 256 * 1024  # beyond what one read brings: parts that the parser keeps until they are whole
DRAINED_SECONDS = 10.0  # between two looks at whether a client reads its answer


class Connection(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, *, edge: Edge, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.since = time.monotonic()  # of its beginning, or of the end of its last answer
        self.client_key = ""
        self._edge = edge
        self._limits = edge.limits
        self._head_began: float | None = self.since
        self._head_bytes = 0
        self._body_began = self._body_came = self.since
        self._body_bytes = 0
        self._unparsed_bytes = 0
        self._refused: tuple[Kind, str] | None = None
        self._left: float | None = None
        self._answering: tuple[RequestResponseCycle, asyncio.Task[None]] | None = None
        self._unread: tuple[float, int] | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether no request is in progress here: none began, or not all of its header fields have come."""
        return self._left is None and (self.cycle is None or self.cycle.response_complete) and not self.pipeline

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note whose it is, and begin, if the limits allow it."""
        super().connection_made(transport)
        peer = Peer.of(transport)
        self.app_state = {**self.app_state, PEER: peer}
        self.client_key = client_key(peer)
        self._edge.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and with it the work that has not begun."""
        super().connection_lost(exc)
        self._edge.forget(self)
        self.pipeline.clear()
        self._abandon()

    def data_received(self, data: bytes) -> None:
        """Parse what has come, unless the client was refused."""
        if self._left is not None:
            return
        if self._head_began is None and self.is_idle:
            self._head_began = time.monotonic()
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > UNPARSED_BYTES and self._left is None:
            self._leave_with(HEAD, f"header field: expected at most {self._limits.head_bytes} bytes")

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take in the address, or a part of it."""
        super().on_url(url)
        self._unparsed_bytes = 0
        if len(self.url) > self._limits.address_bytes:
            self._refuse(ADDRESS, f"address: expected at most {self._limits.address_bytes} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in one header field."""
        super().on_header(name, value)
        self._unparsed_bytes = 0
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > self._limits.head_bytes:
            self._refuse(HEAD, f"header fields: expected at most {self._limits.head_bytes} bytes")
        if len(self.headers) > self._limits.headers:
            self._refuse(HEAD, f"header fields: expected at most {self._limits.headers}")

    def on_headers_complete(self) -> None:
        """Begin to answer the request, or keep it until those before are answered."""
        if len(self.pipeline) >= self._limits.pipelined:
            self._refuse(BUSY, f"expected at most {self._limits.pipelined} requests before the answer to the first")
        self._head_began, self._body_bytes = None, 0
        self._body_began = self._body_came = time.monotonic()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take in a part of the body."""
        self._unparsed_bytes = 0
        self._body_bytes += len(body)
        self._body_came = time.monotonic()
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self.since = time.monotonic()
        super().on_response_complete()

    def resume_writing(self) -> None:
        """Go on with an answer of which the client has read a part."""
        self._unread = None
        super().resume_writing()

    def end_if_overdue(self, now: float) -> None:
        """End the connection when a part of a request, or the reading of an answer, has taken too long."""
        seconds = GUEST_SECONDS if self._edge.is_guest(self) else self._limits.head_seconds
        if self._left is not None and now - self._left > LINGER_SECONDS:
            self.cut_off()
        elif self._left is None and self._head_began is not None and now - self._head_began > seconds:
            self._leave_with(SLOW, f"header fields: expected all of them within {seconds:g} s")
        elif self._left is None and self._is_body_slow(now):
            self._leave_with(SLOW, f"body: expected {self._limits.body_bytes_a_second} bytes a second")
        elif not self._is_read(now):
            self.transport.abort()

    def leave(self) -> None:
        """End an idle connection, and let go of it at once."""
        self._left = time.monotonic()
        self._edge.forget(self)
        self.transport.close()

    def cut_off(self) -> None:
        """End the connection without another word."""
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser refused."""
        self._leave_with(*self._refused or (MALFORMED, msg))

    def _refuse(self, kind: Kind, detail: str) -> None:
        """Refuse the request while it is parsed. Raises: ValueError, which ends the parsing."""
        self._refused = kind, detail
        raise ValueError(detail)

    def _is_body_slow(self, now: float) -> bool:
        """Return whether a body that is waited for has stalled, or comes too slowly on average."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.more_body or self.flow.read_paused:
            return False
        idle, rate = self._limits.idle_seconds, self._limits.body_bytes_a_second
        return now - self._body_came > idle or now - self._body_began > idle + self._body_bytes / rate

    def _leave_with(self, kind: Kind, detail: str) -> None:
        """Send a refusal as the last answer; the client has some time to read it."""
        self._edge.refusals[kind.name] += 1
        is_answering = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if is_answering or self.pipeline or self._is_mute or self.transport.is_closing():
            self.transport.abort()
            return
        self._left = time.monotonic()
        self._abandon()
        answer = self._edge.refusal(kind, detail)
        fields = [*self.server_state.default_headers, *answer.raw_headers]
        head = b"".join(b"%s: %s\r\n" % field for field in fields)
        self.transport.write(STATUS_LINE[kind.status] + head + b"\r\n" + bytes(answer.body))
        self.transport.write_eof()

    def _abandon(self) -> None:
        """Stop the work on a request that nobody waits for, unless a thread does it already."""
        if self._answering is not None:
            cycle, task = self._answering
            cycle.disconnected = True
            task.cancel()

    @property
    def _is_mute(self) -> bool:
        """Return whether nothing at all has come, so that nobody waits for an answer."""
        return getattr(self, "headers", None) is None

    def _is_read(self, now: float) -> bool:
        """Return whether the client reads its answer at the least rate, or there is none to read."""
        size = self.transport.get_write_buffer_size()
        if size == 0:
            self._unread = None
        elif self._unread is None:
            self._unread = now, size
        elif now - self._unread[0] >= DRAINED_SECONDS:
            began, before = self._unread
            self._unread = now, size
            return before - size >= (now - began) * self._limits.body_bytes_a_second
        return True

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGIApp) -> None:  # type: ignore[override]
        answering = self._edge.app_for(self, app, cycle.scope["path"])
        cycle.keep_alive = cycle.keep_alive and not self._edge.is_guest(self)

        async def answer_until_gone(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await answering(scope, receive, send)
            except asyncio.CancelledError:
                if not cycle.disconnected:
                    raise

        task = self.loop.create_task(cycle.run_asgi(cast("ASGI3Application", answer_until_gone)))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        self._answering = cycle, task
