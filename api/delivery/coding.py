"""Content codings of answers: zstd or gzip, as the client prefers."""

import gzip
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache

from anyio.to_thread import run_sync
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.delivery.negotiation import preferences
from crosswind.ingest.ship.zstd import zstd_module

SMALLEST_BYTES = 1000  # a shorter answer fits into one packet as it is
LARGE_BYTES = 64 * 1024  # more is packed in a thread, so that nobody waits for it
GZIP_LEVEL, GZIP_WBITS = 5, 31
ZSTD_LEVEL = 3
FILE_LEVEL = 9  # of files, which are packed once: plotly.js in 0.05 s, by zstd to 461 KB
FILES_KEPT = 64
IDENTITY = "identity"
PACKABLE = ("text/", "application/json", "application/problem+json", "application/vnd.apache.arrow.", "image/svg+xml")
NOT_PACKABLE = ("text/event-stream",)  # each event is to arrive at once
Pack = Callable[[bytes, bool], bytes]  # a piece, and whether it is the last one


def gzip_pack() -> Pack:
    """Return a function that packs pieces of an answer with gzip."""
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WBITS)
    return lambda piece, is_last: packer.compress(piece) + packer.flush(zlib.Z_FINISH if is_last else zlib.Z_SYNC_FLUSH)


def zstd_pack() -> Pack:
    """Return a function that packs pieces of an answer with zstd, in a window that every browser accepts (RFC 9659)."""
    zstd = zstd_module()
    packer = zstd.ZstdCompressor(ZSTD_LEVEL)  # type: ignore[union-attr] # `codings` has looked for it
    return lambda piece, is_last: packer.compress(piece, packer.FLUSH_FRAME if is_last else packer.FLUSH_BLOCK)


PACKS: Mapping[str, Callable[[], Pack]] = {"zstd": zstd_pack, "gzip": gzip_pack}


@lru_cache(maxsize=FILES_KEPT)
def packed_file(content: bytes, coding: str) -> bytes:
    """Return the content of a file in one of the codings, packed the first time that it is asked for."""
    if coding == "gzip":
        return gzip.compress(content, FILE_LEVEL, mtime=0)
    packed: bytes = zstd_module().compress(content, FILE_LEVEL)  # type: ignore[union-attr] # `coding_of` looked
    return packed


def coding_of(field: str) -> str:
    """Return the coding that an Accept-Encoding prefers, of equal ones the best. Source: RFC 9110, 12.5.3."""
    qualities = preferences(field)
    other = qualities.get("*", 0.0)
    offered = {coding: qualities.get(coding, other) for coding in PACKS}
    best = max(offered, key=lambda coding: offered[coding])
    if offered[best] <= 0 or offered[best] < qualities.get(IDENTITY, 0.0):
        return IDENTITY
    return "gzip" if best == "zstd" and zstd_module() is None and offered["gzip"] > 0 else _installed(best)


def _installed(coding: str) -> str:
    return IDENTITY if coding == "zstd" and zstd_module() is None else coding


class Coding:
    """Packs answers that are text, tables or JSON, unless they are packed already."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http":
            send = _Packing(send, Headers(scope=scope).get("accept-encoding", ""))
        await self.app(scope, receive, send)


class _Packing:
    """Sends one answer; its head waits for the first piece of the body, which says whether packing is worth it."""

    def __init__(self, send: Send, accepted: str) -> None:
        self._send = send
        self._accepted = accepted
        self._start: Message | None = None
        self._pack: Pack | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] != "http.response.body":
            await self._send(message)
        elif self._start is None:
            await self._send(await self._packed(message))
        else:
            start, self._start = self._start, None
            self._choose(start, message)
            first = await self._packed(message)
            if self._pack is not None and not message.get("more_body"):
                MutableHeaders(scope=start)["content-length"] = str(len(first["body"]))
            await self._send(start)
            await self._send(first)

    def _choose(self, start: Message, first: Message) -> None:
        headers = MutableHeaders(scope=start)
        kind = headers.get("content-type", "")
        if not kind.startswith(PACKABLE) or kind.startswith(NOT_PACKABLE) or "content-encoding" in headers:
            return
        headers.add_vary_header("Accept-Encoding")
        coding = coding_of(self._accepted)
        is_short = not first.get("more_body") and len(first.get("body", b"")) < SMALLEST_BYTES
        if coding != IDENTITY and not is_short:
            self._pack = PACKS[coding]()
            headers["content-encoding"] = coding
            del headers["content-length"]

    async def _packed(self, message: Message) -> Message:
        if self._pack is None:
            return message
        body, is_last = message.get("body", b""), not message.get("more_body")
        large = len(body) > LARGE_BYTES
        packed = await run_sync(self._pack, body, is_last) if large else self._pack(body, is_last)
        return {**message, "body": packed}
