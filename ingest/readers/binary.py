"""Bytes of a binary file, plain, gzip or zstd, streamed with bounded memory."""

import gzip
import zlib
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.reader.lines import FILE_LIMIT, GZIP_MAGIC, HEAD_BYTES, break_in, head_of
from crosswind.ingest.reader.reader import Report

BLOCK_BYTES = 1 << 20
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class Bytes:
    """Takes a file's bytes one after another; where compressed data is damaged they end, and the report says so."""

    def __init__(self, path: Path, report: Report, *, limit: int = FILE_LIMIT) -> None:
        """Open it. Raises: UnavailableError."""
        self._path, self._report, self._limit = path, report, limit
        self._stream = _stream(path)
        self._waiting, self._taken = b"", 0
        self.place = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def take(self, count: int) -> bytes:
        """Return the next so many bytes; fewer at the end. Raises: UnavailableError, MalformedError (too large)."""
        if len(self._waiting) - self._taken < count:
            self._waiting, self._taken = self._filled(self._waiting[self._taken :], count), 0
        taken = self._waiting[self._taken : self._taken + count]
        self._taken += len(taken)
        self.place += len(taken)
        return taken

    def skip(self, count: int) -> int:
        """Skip so many bytes, or as many as there are. Raises: as `take`."""
        left = count
        while left and (taken := len(self.take(min(left, BLOCK_BYTES)))):
            left -= taken
        return count - left

    def _filled(self, waiting: bytes, count: int) -> bytes:
        blocks, size = [waiting], len(waiting)
        while size < count and (block := self._block(size)):
            blocks.append(block)
            size += len(block)
        return b"".join(blocks)

    def _block(self, waiting: int) -> bytes:
        try:
            block = self._stream.read1(BLOCK_BYTES)  # type: ignore[attr-defined]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self._report.break_off(break_in(self._path, self._stream, error, self.place + waiting))
            return b""
        except OSError as error:
            if isinstance(self._stream, pa.NativeFile):  # Arrow's errors of decompression
                self._report.break_off(f"the zstd data breaks off after {self.place + waiting} bytes: {error}")
                return b""
            raise UnavailableError(f"{self._path}: after {self.place} bytes: {error.strerror}") from error
        if self.place + waiting + len(block) > self._limit:
            raise MalformedError(f"{self._path}: more than {self._limit} bytes")
        return bytes(block)


def _stream(path: Path) -> IO[bytes]:
    head = head_of(path)
    if head.startswith(GZIP_MAGIC):
        return gzip.open(path)  # type: ignore[return-value]
    return pa.input_stream(str(path), "zstd") if head.startswith(ZSTD_MAGIC) else path.open("rb")


def plain_bytes(head: bytes) -> bytes:
    """Return the beginning of a file, unpacked when it is gzip or zstd; empty when it cannot be read."""
    if head.startswith(ZSTD_MAGIC):
        return _plain_zstd(head)
    if not head.startswith(GZIP_MAGIC):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""


def _plain_zstd(head: bytes) -> bytes:
    """Return what unpacks of it; the end of a head is mostly within a block, which Arrow cannot unpack."""
    blocks: list[bytes] = []
    with pa.input_stream(pa.BufferReader(head), "zstd", buffer_size=0) as stream:
        try:
            while len(blocks) * 4096 < HEAD_BYTES and (block := stream.read1(4096)):
                blocks.append(block)
        except OSError:
            pass
    return b"".join(blocks)
