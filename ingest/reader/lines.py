"""Lines of another tool's text file, plain or gzip, streamed with bounded memory."""

import gzip
import json
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

import numpy as np

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.reader.reader import Report

LINE_LIMIT = 1 << 20  # bytes; Slurm's longest fields (scripts, comments) stay well below
FILE_LIMIT = 1 << 36  # bytes after decompression: 64 GiB, some 300 million jobs; a small file must not unpack for ever
BLOCK_BYTES = 1 << 23  # read at once: large enough for columns, small enough for memory
HEAD_BYTES = 1 << 16
NEWLINE = ord("\n")
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Whole lines, each with its end: valid UTF-8 without zero bytes, none longer than LINE_LIMIT.

    A line that breaks these rules was reported, and is empty here, so that the others keep their numbers.
    """

    number: int  # of its first line, from 1
    data: bytes


def blocks(
    path: Path,
    report: Report,
    *,
    file_limit: int = FILE_LIMIT,
    is_whole: Callable[[bytes], bool] = lambda _: False,
) -> Iterator[Block]:
    """Yield the file's lines, many at once, for readers that take columns rather than lines.

    A last line without its end is not read, as it may be cut short or still be written, and the report says so, unless
    `is_whole` recognises the line as complete.
    Raises: UnavailableError, MalformedError (too large).
    """
    number, rest = 1, _Rest(report)
    for chunk in _chunks(path, report, file_limit):
        data = rest.joined(number, chunk)
        if data:
            yield Block(number, _clean(number, data, report))
            number += int(np.count_nonzero(np.frombuffer(data, np.uint8) == NEWLINE))  # bytes.count is slower
    if rest.text and is_whole(rest.text):
        yield Block(number, _clean(number, rest.text + b"\n", report))
    else:
        rest.end(number)


def numbered_lines(path: Path, report: Report, *, file_limit: int = FILE_LIMIT) -> Iterator[tuple[int, str]]:
    """Yield line numbers from 1 and texts without line ends; blank lines are left out, unreadable ones reported.

    Raises: as `blocks`.
    """
    for block in blocks(path, report, file_limit=file_limit):
        yield from lines_of(block)


def lines_of(block: Block) -> Iterator[tuple[int, str]]:
    """Yield the block's lines that are not blank, with their numbers."""
    for number, line in enumerate(block.data.decode().split("\n"), block.number):
        if line.strip():
            yield number, line.rstrip("\r")


def plain_head(head: bytes) -> str:
    """Return the beginning of a file as text, unpacked when it is gzip; empty when it cannot be read."""
    if head.startswith(GZIP_MAGIC):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
        except zlib.error:
            return ""
    return head.removeprefix(BYTE_ORDER_MARK).decode(errors="replace")


def changed_ns(path: Path) -> int:
    """Return the time of a file's last change. Raises: UnavailableError."""
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error


def refuse_pipe(path: Path) -> None:
    """Raises: MalformedError for what cannot be read twice, or has no end."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise MalformedError(f"{path}: neither a file nor a folder: save its output in a file, and name that")


def head_of(path: Path) -> bytes:
    """Return the first HEAD_BYTES of a file as stored. Raises: UnavailableError."""
    try:
        with path.open("rb") as stream:
            return stream.read(HEAD_BYTES)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error


def whole_text(path: Path, report: Report, *, limit: int) -> str:
    """Return all of a file that is no stream of lines, such as one JSON document.

    Raises: UnavailableError, MalformedError for more than `limit` bytes, or what is no UTF-8.
    """
    data = b"".join(_chunks(path, report, limit))
    try:
        return data.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        raise MalformedError(f"{path}: not UTF-8: {error.reason} at byte {error.start + 1}") from error


def whole_object(path: Path, report: Report, *, limit: int) -> Mapping[str, object]:
    """Return the JSON object that a file is. Raises: MalformedError for anything else, and as `whole_text`."""
    try:
        document = json.loads(whole_text(path, report, limit=limit))
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"{path}: no JSON: {error}") from error
    if not isinstance(document, dict):
        raise MalformedError(f"{path}: {type(document).__name__}; expected an object")
    return document


def _chunks(path: Path, report: Report, limit: int) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked; they end where compressed data is damaged, and the report says so."""
    size, packed = 0, head_of(path).startswith(GZIP_MAGIC)
    with gzip.open(path) if packed else path.open("rb") as stream:
        while True:
            try:
                chunk, damage = _filled(stream)
            except OSError as error:
                raise UnavailableError(f"{path}: after {size} bytes: {error.strerror}") from error
            if chunk:
                yield chunk.removeprefix(BYTE_ORDER_MARK) if not size else chunk
            size += len(chunk)
            if size > limit:
                raise MalformedError(f"{path}: more than {limit} bytes of text; split the export by date")
            if damage is not None:
                report.break_off(break_in(path, stream, damage, size))
            if damage is not None or not chunk:
                return


def break_in(path: Path, stream: object, damage: Exception, unpacked: int) -> str:
    """Return where compressed data breaks off, in bytes of the file and of what was unpacked before."""
    packed = getattr(stream, "fileobj", None)
    at = path.stat().st_size if packed is None or isinstance(damage, EOFError) else packed.tell()
    return f"after {unpacked} bytes the compressed data is damaged or cut short at byte {at} of the file: {damage}"


def _filled(stream: gzip.GzipFile | BufferedReader) -> tuple[bytes, Exception | None]:
    """Return the next bytes, at least half a block unless they end, and the error if they end early. Raises: OSError.

    Compressed data comes in small pieces, and the work for a block outweighs that for the lines of a small one.
    """
    pieces: list[bytes] = []
    held = 0
    while 2 * held < BLOCK_BYTES:
        try:
            piece = stream.read1(BLOCK_BYTES - held)  # also the bytes unpacked before the damage
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            return b"".join(pieces), error
        if not piece:
            break
        pieces.append(piece)
        held += len(piece)
    return b"".join(pieces), None


class _Rest:
    """The text after the last line end so far, until that line ends."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.text = b""
        self._is_too_long = False

    def joined(self, number: int, chunk: bytes) -> bytes:
        """Return the lines that are whole now; one that is too long already becomes empty."""
        if self._is_too_long:
            chunk = chunk[end:] if (end := chunk.find(b"\n")) >= 0 else b""
            self._is_too_long = not chunk
        cut = chunk.rfind(b"\n") + 1
        data = b"".join((self.text, memoryview(chunk)[:cut])) if cut else b""
        self.text = chunk[cut:] if cut else self.text + chunk
        if len(self.text) > LINE_LIMIT:
            self._report.skip(number + data.count(b"\n"), _quoted(self.text), f"longer than {LINE_LIMIT} bytes")
            self.text, self._is_too_long = b"", True
        return data

    def end(self, number: int) -> None:
        """Report a line that never ended."""
        if self.text.strip():
            reason = "the last line has no line end: it may be cut short; end it, or ingest the file again when it grew"
            self._report.skip(number, _quoted(self.text), reason)


def _clean(number: int, data: bytes, report: Report) -> bytes:
    if b"\0" not in data and _is_text(data) and _are_short(data):
        return data
    return b"".join(_checked(*line, report) for line in enumerate(data.splitlines(keepends=True), number))


def _checked(number: int, line: bytes, report: Report) -> bytes:
    reason = _fault(line)
    if reason:
        report.skip(number, _quoted(line), reason)
    return b"\n" if reason else line


def _fault(line: bytes) -> str:
    if len(line) > LINE_LIMIT:
        return f"longer than {LINE_LIMIT} bytes"
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: {error.reason} at byte {error.start + 1}"
    return "holds a zero byte, which no text does" if b"\0" in line else ""


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _are_short(data: bytes) -> bool:
    """Return whether there is a line end in every half of LINE_LIMIT: then no line is longer than that."""
    half = LINE_LIMIT // 2
    return all(data.find(b"\n", start, start + half) >= 0 for start in range(0, len(data), half))


def _quoted(line: bytes) -> str:
    return line[:200].decode(errors="replace").replace("\0", "�").rstrip("\r\n")
