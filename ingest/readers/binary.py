"""Bytes of a binary file, plain or gzip, streamed with bounded memory."""

import gzip
import zlib
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.reader.lines import FILE_LIMIT, GZIP_MAGIC, HEAD_BYTES, break_in, head_of
from crosswind.ingest.reader.reader import Report

BLOCK_BYTES = 1 << 20


class Bytes:
    """Takes a file's bytes one after another; where compressed data is damaged they end, and the report says so."""

    def __init__(self, path: Path, report: Report, *, limit: int = FILE_LIMIT) -> None:
        """Open it. Raises: UnavailableError."""
        self._path, self._report, self._limit = path, report, limit
        packed = head_of(path).startswith(GZIP_MAGIC)
        self._stream: IO[bytes] = gzip.open(path) if packed else path.open("rb")  # type: ignore[assignment]  # noqa: SIM115  __exit__ closes it
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
            raise UnavailableError(f"{self._path}: after {self.place} bytes: {error.strerror}") from error
        if self.place + waiting + len(block) > self._limit:
            raise MalformedError(f"{self._path}: more than {self._limit} bytes")
        return bytes(block)


def plain_bytes(head: bytes) -> bytes:
    """Return the beginning of a file, unpacked when it is gzip; empty when it cannot be read."""
    if not head.startswith(GZIP_MAGIC):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""
