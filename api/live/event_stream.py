"""A stream of events as Server-Sent Events.

Source: html.spec.whatwg.org/multipage/server-sent-events.html.
"""

import math
import time
from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec
from anyio.to_thread import run_sync
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from crosswind.api.live.feed import STOPPING, TOKEN_OVER, Feed, Stream
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.schema.answers.events import Event, EventPart

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 15.0
RETRY_MILLISECONDS = 2000  # after which a client comes back
PART = 500  # events that are read at once for a client that catches up
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx would collect them


class EventStream(Response):
    """Sends what is after a position, then what comes, until the client leaves, the token ends or the server stops."""

    media_type = MEDIA_TYPE

    def __init__(self, feed: Feed, catalog: Catalog, stream: Stream, after: int | None) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._feed = feed
        self._catalog = catalog
        self._stream = stream
        self._after = after

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the stream; whoever leaves has it cancelled."""
        async with self._feed.joined(self._stream):
            end = await run_sync(self._expiry, limiter=self._feed.readers)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self._pieces(end):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    async def _pieces(self, end: float) -> AsyncIterator[bytes]:
        stream = self._stream
        begin = stream.since if self._after is None else self._after
        yield f"retry: {RETRY_MILLISECONDS}\nid: {begin}\n\n".encode()
        async for events in self._earlier(begin):
            yield _text(events)
        while stream.end is None:
            remaining_seconds = end - time.monotonic()
            if remaining_seconds <= 0:
                stream.finish(TOKEN_OVER)
            elif events := stream.taken():
                yield _text(events)
            elif not await stream.is_news(min(HEARTBEAT_SECONDS, remaining_seconds)):
                yield f": alive\nid: {stream.position}\n\n".encode()
        if stream.end == STOPPING:
            yield _text(stream.taken())
        yield f": {stream.end}\n\n".encode()

    async def _earlier(self, begin: int) -> AsyncIterator[Sequence[Event]]:
        """Yield what was stored after the position that the client names and before the feed took over."""
        stream, is_complete = self._stream, self._after is None
        position = begin
        while not is_complete:
            part = await run_sync(self._read, position, limiter=self._feed.readers)
            yield part.events
            position = part.position
            is_complete = part.is_last or position >= stream.since or stream.end is not None
        stream.position = position

    def _read(self, position: int) -> EventPart:
        with self._catalog.read() as session:
            return session.events.after(position, self._stream.wanted, limit=PART)

    def _expiry(self) -> float:
        """Return when the caller's token ends, by the monotonic clock, where it did not since it was let in."""
        if self._stream.token_id is None:
            return math.inf
        with self._catalog.read() as session:
            token = session.tokens.get(self._stream.token_id)
        remaining_ns = 0 if token.revoked_ns is not None else token.expires_ns - self._catalog.clock()
        return time.monotonic() + remaining_ns * 1e-9


def _text(events: Iterable[Event]) -> bytes:
    return b"".join(map(_event, events))


def _event(event: Event) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.event_id, event.kind.encode(), msgspec.json.encode(event))
