"""Unpacking of bodies in a content coding, piece by piece, so that memory holds one piece at most."""

import zlib
from collections.abc import Callable, Iterator, Mapping

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.ship.zstd import zstd_module

PIECE_BYTES = 1024 * 1024
WINDOW_LOG = 23  # 8 MB, the most that RFC 9659 allows a sender
GZIP_WBITS = 31  # zlib's sign for a gzip header and the largest window


def unpack(body: bytes, coding: str) -> Iterator[bytes]:
    """Yield the body without its content coding, which is one of `codings()`.

    Raises: MalformedError when it is cut off, garbled, or more than one stream.
    """
    return CODINGS[coding](body)


def codings() -> tuple[str, ...]:
    """Return the content codings that can be unpacked here."""
    if zstd_module() is None:
        return tuple(name for name in CODINGS if name != "zstd")
    return tuple(CODINGS)


def _unzstd(body: bytes) -> Iterator[bytes]:
    zstd = zstd_module()
    if zstd is None:
        raise MalformedError("body: zstd is not installed here")
    unpacker = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG})
    try:
        while not unpacker.eof:
            piece = unpacker.decompress(body, PIECE_BYTES)
            if not piece and unpacker.needs_input and not unpacker.eof:
                raise MalformedError("body: cut off within its zstd frame")
            body = b""
            yield piece
    except zstd.ZstdError as error:
        raise MalformedError(f"body: expected one zstd frame with a window of at most 8 MB: {error}") from error
    _refuse_more(unpacker.unused_data)


def _gunzip(body: bytes) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(GZIP_WBITS)
    try:
        while not unpacker.eof:
            piece = unpacker.decompress(body, PIECE_BYTES)
            body = unpacker.unconsumed_tail
            if not piece and not body and not unpacker.eof:
                raise MalformedError("body: cut off within its gzip stream")
            yield piece
    except zlib.error as error:
        raise MalformedError(f"body: expected gzip: {error}") from error
    _refuse_more(unpacker.unused_data)


def _identity(body: bytes) -> Iterator[bytes]:
    yield body


def _refuse_more(rest: bytes) -> None:
    if rest:
        raise MalformedError(f"body: {len(rest)} bytes after the end of its coding")


CODINGS: Mapping[str, Callable[[bytes], Iterator[bytes]]] = {"zstd": _unzstd, "gzip": _gunzip, "identity": _identity}
