"""Record logs of W&B: fragments in blocks of 32 KiB, as in LevelDB's logs."""

import struct
import zlib
from collections.abc import Iterator

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import Bytes

BEGINNING = b":W&B\xe1\xbe\x00"  # ident, magic 0xBEE1, version 0
BLOCK_BYTES = 1 << 15
HEADER = struct.Struct("<IHB")
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
RECORD_LIMIT = 1 << 24  # bytes


def records(stream: Bytes, report: Report) -> Iterator[tuple[int, bytes]]:
    """Yield numbers from 1 and data of the whole records; the report has the others.

    Source: github.com/google/leveldb, doc/log_format.md; the checksum here is zlib's CRC-32 of type and data.
    Raises: MalformedError (another beginning, or as `Bytes.take`), UnavailableError.
    """
    if (beginning := stream.take(len(BEGINNING))) != BEGINNING:
        raise MalformedError(f"begins with {beginning!r}; expected {BEGINNING!r}")
    number, parts = 0, _Parts()
    for kind, data in _fragments(stream, report):
        if fault := parts.fault(kind, data):
            report.skip(number + 1, "", f"record {number + 1}: {fault}")
        parts.add(kind, data)
        if kind in (FULL, LAST) and parts.is_whole:
            number += 1
            yield number, parts.taken()
    if parts.is_whole:
        report.skip(number + 1, "", f"record {number + 1} is cut short: its file may still be written")


class _Parts:
    """The fragments of the record that is being put together."""

    def __init__(self) -> None:
        self.is_whole = False  # from its first fragment on
        self._data: list[bytes] = []
        self._size = 0

    def fault(self, kind: int, data: bytes) -> str:
        """Return why a fragment does not continue the record; empty when it does."""
        if kind in (MIDDLE, LAST) and not self.is_whole:
            return "its beginning is missing"
        if kind in (FULL, FIRST) and self.is_whole:
            return "its end is missing"
        return f"more than {RECORD_LIMIT} bytes" if self._size + len(data) > RECORD_LIMIT else ""

    def add(self, kind: int, data: bytes) -> None:
        """Take a fragment."""
        if kind in (FULL, FIRST):
            self._data, self._size, self.is_whole = [], 0, True
        self._data.append(data)
        self._size += len(data)
        if self._size > RECORD_LIMIT or not self.is_whole:
            self._data, self._size, self.is_whole = [], 0, False

    def taken(self) -> bytes:
        """Return the record, and forget it."""
        data = b"".join(self._data)
        self._data, self._size, self.is_whole = [], 0, False
        return data


def _fragments(stream: Bytes, report: Report) -> Iterator[tuple[int, bytes]]:
    """Yield kinds and data; after two damaged ones in a row, from the next block on: their lengths may be wrong."""
    is_doubtful = False
    while True:
        left = BLOCK_BYTES - stream.place % BLOCK_BYTES
        if left < HEADER.size:
            stream.skip(left)
            left = BLOCK_BYTES
        header = stream.take(HEADER.size)
        if len(header) < HEADER.size:
            return
        checksum, length, kind = HEADER.unpack(header)
        data = stream.take(min(length, left - HEADER.size))
        if len(data) < length <= left - HEADER.size:
            report.skip(0, "", f"cut short after byte {stream.place}: the file may still be written")
            return
        if len(data) == length and zlib.crc32(data, zlib.crc32(header[-1:])) == checksum:
            is_doubtful = False
            yield kind, data
            continue
        report.skip(0, "", f"a record that ends at byte {stream.place} does not have its checksum")
        if is_doubtful or length > left - HEADER.size:
            stream.skip(-stream.place % BLOCK_BYTES)
        is_doubtful = not is_doubtful
