"""The lines of a text file that somebody else wrote, plain or gzip, in a stream with bounded memory."""

import gzip
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from crosswind.data.errors import MalformedError, UnavailableError
from crosswind.ingest.readers.reader import Report

LINE_LIMIT = 1 << 20  # bytes; Slurm's longest fields (scripts, comments) stay well below
FILE_LIMIT = 1 << 36  # bytes after decompression: 64 GiB, some 300 million jobs; a small file must not unpack for ever
HEAD_BYTES = 1 << 16
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def numbered_lines(path: Path, report: Report, *, file_limit: int = FILE_LIMIT) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and texts without line ends; blank lines are left out, unreadable ones go to the report.

    Raises: UnavailableError, MalformedError (too large).
    """
    packed = head_of(path).startswith(GZIP_MAGIC)
    with cast("BinaryIO", gzip.open(path)) if packed else path.open("rb") as stream:
        for number, line in _raw_lines(BoundedStream(path, stream, file_limit), report):
            if not line.endswith(b"\n"):
                report.notes.append(f"line {number}, the last, has no line end: the file may be cut short there")
            yield from _decoded(number, line, report)


def plain_head(head: bytes) -> str:
    """The beginning of a file as text, unpacked when it is gzip; empty when it cannot be read."""
    if head.startswith(GZIP_MAGIC):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
        except zlib.error:
            return ""
    return head.removeprefix(BYTE_ORDER_MARK).decode(errors="replace")


def head_of(path: Path) -> bytes:
    """The first HEAD_BYTES of a file as stored. Raises: UnavailableError."""
    try:
        with path.open("rb") as stream:
            return stream.read(HEAD_BYTES)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error


@dataclass
class BoundedStream:
    """The bytes of a file, up to a number after which it is refused."""

    path: Path
    stream: BinaryIO
    limit: int
    size: int = 0

    def readline(self) -> bytes:
        """The next line, or the first LINE_LIMIT + 1 bytes of it. Raises: MalformedError, UnavailableError."""
        try:
            line = self.stream.readline(LINE_LIMIT + 1)
        except gzip.BadGzipFile:
            raise
        except OSError as error:
            raise UnavailableError(f"{self.path}: after {self.size} bytes: {error.strerror}") from error
        self.size += len(line)
        if self.size > self.limit:
            raise MalformedError(f"{self.path}: more than {self.limit} bytes of text; split the export by date")
        return line


def _raw_lines(stream: BoundedStream, report: Report) -> Iterator[tuple[int, bytes]]:
    """Each line with its end; one that is too long is reported, and so is where compressed data is damaged."""
    for number in itertools.count(1):
        try:
            line = stream.readline()
            if len(line) > LINE_LIMIT:
                report.skip(number, line[:200].decode(errors="replace"), f"longer than {LINE_LIMIT} bytes")
                while line and not line.endswith(b"\n"):
                    line = stream.readline()
                continue
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            report.skip(number, "", f"the compressed data is damaged or cut short here: {error}")
            return
        if not line:
            return
        yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def _decoded(number: int, line: bytes, report: Report) -> Iterator[tuple[int, str]]:
    """The line as text, unless it is blank or no text."""
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        report.skip(number, line[:200].decode(errors="replace"), f"not UTF-8: {error.reason} at byte {error.start + 1}")
        return
    if "\0" in text:
        report.skip(number, text[:200].replace("\0", "�"), "holds a zero byte, which no text does")
    elif text.strip():
        yield number, text
