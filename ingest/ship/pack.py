"""Compression of segments for the network, as well as this Python can."""

import gzip

from crosswind.ingest.ship.zstd import zstd_module

GZIP_LEVEL = 4
ZSTD_LEVEL = 3  # its windows stay far below the 8 MB that a receiver must take


def pack(content: bytes, coding: str) -> bytes:
    """Compress the content in a coding of `packings()`."""
    if coding == "zstd" and (zstd := zstd_module()):
        packed: bytes = zstd.compress(content, ZSTD_LEVEL)
        return packed
    return gzip.compress(content, GZIP_LEVEL, mtime=0) if coding == "gzip" else content


def packings() -> tuple[str, ...]:
    """Return the codings that this Python can make, best first."""
    return ("gzip", "identity") if zstd_module() is None else ("zstd", "gzip", "identity")
