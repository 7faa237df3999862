"""Elements of one array in a large JSON document, one element and one block at a time in memory."""

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.reader.lines import BYTE_ORDER_MARK, FILE_LIMIT, GZIP_MAGIC, break_in, head_of
from crosswind.ingest.reader.reader import Report

LONGEST_INDENT = 256  # characters before an element, in which its column is searched
SPACE = re.compile(r"[ \t\r\n]*")
INDENT = re.compile(r"\n([ \t]*)\Z")
NOT_TEXT = re.compile(r"[\ud800-\udfff]")
HALF = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that is a character only together with its pair
NOT_UTF8 = re.compile(r"[\udc80-\udcff]")  # as `surrogateescape` decodes them


@dataclass(frozen=True)
class Item:
    """One element of the array, and the line in which it begins."""

    line: int
    text: str  # its beginning
    value: object


@dataclass(frozen=True)
class Limits:
    """Bounds on the size of a read, and of an element."""

    block_bytes: int = 1 << 20
    item: int = 1 << 26  # characters: a job of 10 000 steps, at the 6 KB that Slurm writes for each


LIMITS = Limits()


def items(path: Path, report: Report, name: str, *, limits: Limits = LIMITS) -> Iterator[Item]:
    """Yield the elements of the array under `name` in the document's outermost object.

    An element that is no JSON goes to the report, and so does the rest of a document that breaks off.
    Raises: UnavailableError, MalformedError when it is no object.
    """
    window = _Window(_chunks(path, report, limits.block_bytes), report, limits)
    if not window.taken("{"):
        raise MalformedError(f"{path}: line {window.line}: expected a JSON object, found {window.seen()!r}")
    try:
        yield from _members(window, name)
    except _BrokenError as error:
        report.skip(
            window.line, window.seen(), f"{error}: what follows is not read (is it cut short, or still written?)"
        )


class _BrokenError(Exception):
    """The document is not JSON from here on."""


def _members(window: "_Window", name: str) -> Iterator[Item]:
    is_closed = window.taken("}")
    while not is_closed:
        key = window.value()
        window.expect(":")
        if key == name and window.taken("["):
            yield from _elements(window)
        else:
            window.value()
        is_closed = window.taken("}")
        if not is_closed:
            window.expect(",")


def _elements(window: "_Window") -> Iterator[Item]:
    is_closed = window.taken("]")
    while not is_closed:
        item = window.item()
        if item is not None:
            yield item
        is_closed = window.taken("]")
        if not is_closed:
            window.expect(",")


class _Window:
    """The part of a document that is being read."""

    def __init__(self, chunks: Iterator[str], report: Report, limits: Limits) -> None:
        self._chunks = chunks
        self._limits = limits
        self._report = report
        self._text = ""
        self._at = 0
        self._line, self._counted = 1, 0
        self._decoder = json.JSONDecoder(parse_constant=_no_number)

    @property
    def line(self) -> int:
        """Return the number of the next line, from 1."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def seen(self) -> str:
        """Return the beginning of the rest, in one line."""
        return " ".join(NOT_TEXT.sub("\ufffd", self._text[self._at : self._at + 400]).split())[:200]

    def taken(self, sign: str) -> bool:
        """Skip the sign if it comes next. Return whether it did."""
        is_next = self._skip_space() and self._text[self._at] == sign
        self._at += is_next
        return is_next

    def expect(self, sign: str) -> None:
        """Skip the sign. Raises: _BrokenError when something else comes."""
        if not self.taken(sign):
            there = repr(self.seen()[:20]) if self.seen() else "the end"
            raise _BrokenError(f"expected {sign!r}, found {there}")

    def value(self) -> object:
        """Read the next value. Raises: _BrokenError."""
        self._skip_space()
        try:
            value, self._at = self._decoded()
        except (ValueError, RecursionError) as error:
            raise _BrokenError(_reason(error)) from error
        return value

    def item(self) -> Item | None:
        """Read the next element; None when it is broken, which was reported. Raises: _BrokenError."""
        self._skip_space()
        item, reason = Item(self.line, self.seen(), None), ""
        try:
            value, end = self._decoded()
            item = replace(item, value=value)
            reason = self._no_text(value, end)
        except (ValueError, RecursionError) as error:
            reason = _reason(error)
            end = self._end_of_broken(reason)
        self._at = end
        if reason:
            self._report.skip(item.line, item.text, reason)
        return None if reason else item

    def _no_text(self, value: object, end: int) -> str:
        """Return why the texts of the next value, which ends there, cannot be stored; empty when they can."""
        if NOT_UTF8.search(self._text, self._at, end):
            return "holds bytes that are not UTF-8"
        if self._text.find("\\u", self._at, end) < 0 or not HALF.search(self._text, self._at, end):
            return ""
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            return f"holds half a character: \\u{ord(error.object[error.start]):04x}"
        return ""

    def _decoded(self) -> tuple[object, int]:
        """Return the next value and its end. Raises: ValueError, RecursionError."""
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError):
                if len(self._text) - self._at > self._limits.item or not self._more():
                    raise
            else:
                if end < len(self._text) or not self._more():  # a number at the end may continue
                    return value, end

    def _end_of_broken(self, reason: str) -> int:
        """Return the end of an element that is no JSON: Slurm writes an object's brackets below each other.

        Raises: _BrokenError when that is not certain.
        """
        indent = INDENT.search(self._text[max(0, self._at - LONGEST_INDENT) : self._at])
        if not indent:
            raise _BrokenError(reason)
        closing = f"\n{indent[1]}}}"
        while (end := self._text.find(closing, self._at)) < 0:
            self._at = max(self._at, len(self._text) - LONGEST_INDENT)
            if not self._more():
                raise _BrokenError(reason)
        return end + len(closing)

    def _skip_space(self) -> bool:
        """Skip white space. Return whether anything follows."""
        while True:
            match = SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return True
            if not self._more():
                return False

    def _more(self) -> bool:
        """Read as much again as is waiting, and drop the text before. Return whether there was more."""
        before = self.line - self._text.count("\n", max(0, self._at - LONGEST_INDENT), self._at)
        keep = max(0, self._at - LONGEST_INDENT)
        wanted, pieces = max(self._limits.block_bytes, len(self._text) - self._at), [self._text[keep:]]
        while wanted > 0 and (chunk := next(self._chunks, "")):
            pieces.append(chunk)
            wanted -= len(chunk)
        self._text, self._at = "".join(pieces), self._at - keep
        self._line, self._counted = before, 0
        return len(pieces) > 1


def _chunks(path: Path, report: Report, block_bytes: int) -> Iterator[str]:
    """Yield the text of a file, unpacked; bytes that are no UTF-8 become lone surrogates.

    Raises: UnavailableError, MalformedError (too large).
    """
    size, decoder = 0, codecs.getincrementaldecoder("utf-8")("surrogateescape")
    with gzip.open(path) if head_of(path).startswith(GZIP_MAGIC) else path.open("rb") as stream:
        while chunk := _block(stream, block_bytes, (path, size), report):
            text = decoder.decode(chunk if size else chunk.removeprefix(BYTE_ORDER_MARK))
            size += len(chunk)
            if size > FILE_LIMIT:
                raise MalformedError(f"{path}: more than {FILE_LIMIT} bytes of text; split the export by date")
            yield text
    yield decoder.decode(b"", final=True)


def _block(
    stream: io.BufferedReader | gzip.GzipFile, block_bytes: int, place: tuple[Path, int], report: Report
) -> bytes:
    path, size = place
    try:
        return stream.read1(block_bytes)  # also the text unpacked before the damage
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        report.break_off(break_in(path, stream, error, size))
        return b""
    except OSError as error:
        raise UnavailableError(f"{path}: after {size} bytes: {error.strerror}") from error


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _reason(error: ValueError | RecursionError) -> str:
    match error:
        case RecursionError():
            return "no JSON: nested too deep"
        case json.JSONDecodeError():
            return f"no JSON: {error.msg}"
        case _:
            return f"no JSON: {error}"
