"""Rows of a table in a file, some at a time: CSV in any delimiter, JSON lines and Parquet, plain or gzip."""

import csv
import gzip
import io
import itertools
import json
import math
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.reader.lines import GZIP_MAGIC, Block, blocks, head_of, plain_head
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import plain_bytes
from crosswind.ingest.readers.scalars import flat

PARQUET = b"PAR1"
DELIMITERS = (",", "\t", ";", "|")
ROWS_AT_ONCE = 50_000
CHUNK_BYTES = 1 << 23  # of text, at which a chunk is full
COLUMNS_MAX = 10_000
ISO_TIME = "%Y-%m-%dT%H:%M:%S"


@dataclass(frozen=True)
class Chunk:
    """Rows of a table in their order: the number of each one's line, (n,), and columns of n cells, null where empty."""

    lines: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    columns: dict[str, pa.Array]

    def __len__(self) -> int:
        return len(self.lines)

    def parts(self) -> "Iterator[Chunk]":
        """Yield the rows as chunks of at most ROWS_AT_ONCE."""
        for first in range(0, len(self), ROWS_AT_ONCE):
            columns = {name: column.slice(first, ROWS_AT_ONCE) for name, column in self.columns.items()}
            yield Chunk(self.lines[first : first + ROWS_AT_ONCE], columns)

    def rows(self) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield the number of each row's line and its cells by column, without those that are empty."""
        names = list(self.columns)
        cells = [column.to_pylist() for column in self.columns.values()]
        for line, row in zip(self.lines.tolist(), zip(*cells, strict=True), strict=True):
            yield line, {name: cell for name, cell in zip(names, row, strict=True) if not _is_missing(cell)}


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


class Table(Protocol):
    """A table that is being read. If not `is_typed`, all cells are texts, of numbers too."""

    names: tuple[str, ...]
    is_typed: bool

    def chunks(self) -> Iterator[Chunk]:
        """Yield its rows; those that cannot be read go to the report. Raises: MalformedError, UnavailableError."""
        ...


@contextmanager
def opened(path: Path, report: Report, delimiter: str = "") -> Iterator[Table]:
    """Open a table by what its beginning shows. Raises: MalformedError, UnavailableError."""
    head = head_of(path)
    if plain_bytes(head).startswith(PARQUET):
        with _unpacked(path, head) as file:
            yield _ParquetTable(path, file)
    elif plain_head(head).lstrip().startswith("{"):
        yield _JsonTable(path, report)
    else:
        yield _CsvTable(path, report, delimiter)


def header_of(head: bytes) -> tuple[str, ...]:
    """Return the column names in the first line of CSV or JSON lines; empty where it is neither. Never raises."""
    line, end, _ = plain_head(head).partition("\n")
    try:
        if line.lstrip().startswith("{"):
            row = json.loads(line)
            return tuple(flat(row)) if isinstance(row, dict) else ()
        return tuple(_names(line, "")) if end else ()
    except (ValueError, RecursionError, csv.Error, MalformedError):
        return ()


def parquet_names(path: Path) -> tuple[str, ...]:
    """Return the column names of a Parquet file; empty where it cannot be read. Never raises."""
    try:
        with opened(path, Report("", "")) as table:
            return table.names
    except Exception:  # noqa: BLE001  a recogniser never raises, whatever a damaged file makes of its library
        return ()


class _CsvTable:
    """Lines of cells between delimiters, under a line of names. From the first quote on, lines are read one by one."""

    is_typed = False

    def __init__(self, path: Path, report: Report, delimiter: str) -> None:
        self._report = report
        self._blocks = blocks(path, report)
        block, first = _first_line(self._blocks)
        self._blocks = itertools.chain([block], self._blocks)
        try:
            self.names = tuple(_names(first, delimiter))
        except csv.Error as error:
            raise MalformedError(f"{path}: line 1: {first[:80]!r}; expected the names of columns: {error}") from error
        fault = _fault_of_names(self.names)
        if fault:
            raise MalformedError(f"{path}: line 1: {fault}: {first.strip()[:200]!r}; expected the names of columns")
        self._delimiter = delimiter or _delimiter(first)

    def chunks(self) -> Iterator[Chunk]:
        for block in self._blocks:
            if b'"' in block.data:
                yield from self._read(block.number, itertools.chain([block], self._blocks))
            elif whole := self._whole(block):
                yield from whole.parts()
            else:
                yield from self._read(block.number, iter([block]))

    def _whole(self, block: Block) -> Chunk | None:
        """Return the rows of a block at once; None if a line of it is no row of cells."""
        try:
            table = pa.csv.read_csv(
                io.BytesIO(block.data),
                pa.csv.ReadOptions(use_threads=False, column_names=self.names, block_size=len(block.data) + 1),
                pa.csv.ParseOptions(delimiter=self._delimiter, quote_char=False, ignore_empty_lines=False),
                pa.csv.ConvertOptions(column_types=dict.fromkeys(self.names, pa.large_string()), check_utf8=False),
            )
        except (pa.ArrowException, ValueError):
            return None
        if len(table) != block.data.count(b"\n"):
            return None
        columns = {name: _without_empty(table[name].combine_chunks()) for name in self.names}
        return Chunk(np.arange(block.number, block.number + len(table), dtype=np.int64), columns)

    def _read(self, first: int, several: Iterator[Block]) -> Iterator[Chunk]:
        """Yield the rows of blocks line by line; of lines that are none, the report says why."""
        numbers: list[int] = []
        rows: list[list[str]] = []
        size = 0
        for number, row in self._rows(_Lines(first, several)):
            numbers.append(number)
            rows.append(row)
            size += sum(map(len, row))
            if len(rows) >= ROWS_AT_ONCE or size > CHUNK_BYTES:
                yield self._chunk(numbers, rows)
                numbers, rows, size = [], [], 0
        if rows:
            yield self._chunk(numbers, rows)

    def _rows(self, lines: "_Lines") -> Iterator[tuple[int, list[str]]]:
        cells = csv.reader(lines, delimiter=self._delimiter, strict=True)
        while True:
            number = lines.next_number
            try:
                row = next(cells, None)
            except csv.Error as error:
                self._report.skip(number, "", f"no row of cells: {error}")
                continue
            if row is None:
                return
            if len(row) == len(self.names):
                yield number, row
            elif any(cell.strip() for cell in row):
                text = self._delimiter.join(row)
                self._report.skip(number, text, f"{len(row)} cells; expected {len(self.names)}")

    def _chunk(self, numbers: list[int], rows: list[list[str]]) -> Chunk:
        columns = zip(self.names, zip(*rows, strict=True), strict=True)
        arrays = {name: _without_empty(pa.array(cells, pa.large_string())) for name, cells in columns}
        return Chunk(np.array(numbers, np.int64), arrays)


class _Lines:
    """Lines of blocks with their ends, blank ones as well, and the number of the next one."""

    def __init__(self, first: int, several: Iterator[Block]) -> None:
        self._texts = (text + "\n" for block in several for text in block.data.decode().split("\n")[:-1])
        self.next_number = first

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        text = next(self._texts)
        self.next_number += 1
        return text


def _first_line(several: Iterator[Block]) -> tuple[Block, str]:
    """Return the first line that is not blank, and the rest of its block."""
    for block in several:
        for number, text in enumerate(block.data.decode().split("\n"), block.number):
            if text.strip():
                lines = number + 1 - block.number
                return Block(number + 1, block.data.split(b"\n", lines)[lines]), text
    return Block(1, b""), ""


def _without_empty(texts: pa.Array) -> pa.Array:
    """Return cells without space around them, null if empty."""
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.large_string()), trimmed)


class _JsonTable:
    """One JSON object a line; what is nested has a name with dots."""

    is_typed = True

    def __init__(self, path: Path, report: Report) -> None:
        self._path, self._report = path, report
        first = next(_json_chunks(path, Report("", "")), None)  # columns may begin in later rows
        self.names = tuple(first.columns) if first else ()

    def chunks(self) -> Iterator[Chunk]:
        yield from _json_chunks(self._path, self._report)


def _json_chunks(path: Path, report: Report) -> Iterator[Chunk]:
    numbers: list[int] = []
    rows: list[dict[str, Any]] = []
    size = 0
    for block in blocks(path, report, is_whole=_is_object):
        for number, text in enumerate(block.data.decode().split("\n"), block.number):
            if row := _json_row(number, text, report):
                numbers.append(number)
                rows.append(row)
            size += len(text)
            if len(rows) >= ROWS_AT_ONCE or (rows and size > CHUNK_BYTES):
                yield _json_chunk(numbers, rows)
                numbers, rows, size = [], [], 0
    if rows:
        yield _json_chunk(numbers, rows)


def _json_row(number: int, text: str, report: Report) -> dict[str, Any]:
    """Return the row in a line; empty where there is none, which is reported unless the line is blank."""
    if not text.strip():
        return {}
    try:
        row = json.loads(text)
        if isinstance(row, dict):
            return dict(flat(row))
        reason = "expected a JSON object"
    except (ValueError, RecursionError, MalformedError) as error:
        reason = f"expected a JSON object: {error}"
    report.skip(number, text, reason)
    return {}


def _json_chunk(numbers: list[int], rows: list[dict[str, Any]]) -> Chunk:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _array([row.get(name) for row in rows]) for name in names}
    return Chunk(np.array(numbers, np.int64), columns)


def _array(cells: Sequence[Any]) -> pa.Array:
    """Return the cells as an array; of several types as texts."""
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.large_string())


class _ParquetTable:
    """A Parquet file; its lines are its rows, from 1."""

    is_typed = True

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        try:
            self._file = pq.ParquetFile(file, page_checksum_verification=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(path, 0, error) from error
        self.names = tuple(self._file.schema_arrow.names)
        if fault := _fault_of_names(self.names):
            raise MalformedError(f"{path}: {fault}; expected columns that are all named differently")

    def chunks(self) -> Iterator[Chunk]:
        number = 0
        try:
            for batch in self._file.iter_batches(batch_size=self._batch_size()):
                batch.validate(full=True)  # a damaged file may hold texts that are none
                columns = {name: _plain(batch.column(place)) for place, name in enumerate(self.names)}
                yield Chunk(np.arange(number + 1, number + 1 + len(batch), dtype=np.int64), columns)
                number += len(batch)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _damaged(self._path, number, error) from error

    def _batch_size(self) -> int:
        """Return how many rows are read at once: fewer where they are wide."""
        metadata = self._file.metadata
        size = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
        row_bytes = size / max(metadata.num_rows, 1) + 16 * len(self.names)
        return int(min(max(4 * CHUNK_BYTES / max(row_bytes, 1.0), 100), ROWS_AT_ONCE))


def _plain(column: pa.Array) -> pa.Array:
    """Return numbers, truth values and texts as they are, times as ISO texts, and anything else as texts."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.dictionary_decode())
    if pa.types.is_timestamp(kind):
        return pc.strftime(column, format=ISO_TIME if kind.tz is None else f"{ISO_TIME}%z")
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return column.cast(pa.float64())
    is_plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    texts = (pa.types.is_string, pa.types.is_large_string)
    if any(test(kind) for test in (*is_plain, *texts)):
        return column
    return pa.array([None if cell is None else str(cell) for cell in column.to_pylist()], pa.large_string())


@contextmanager
def _unpacked(path: Path, head: bytes) -> Iterator[IO[bytes]]:
    """Open a file that is read at many places; one that is packed is unpacked next to other temporary files."""
    if not head.startswith(GZIP_MAGIC):
        with path.open("rb") as file:
            yield file
        return
    with gzip.open(path) as packed, tempfile.TemporaryFile() as file:
        try:
            shutil.copyfileobj(packed, file)
        except (EOFError, OSError) as error:
            raise _damaged(path, 0, error) from error
        file.seek(0)
        yield file


def _damaged(path: Path, rows: int, error: Exception) -> MalformedError | UnavailableError:
    if isinstance(error, OSError) and error.strerror:
        return UnavailableError(f"{path}: after {rows} rows: {error.strerror}")
    reason = " ".join(str(error).split())
    return MalformedError(f"{path}: damaged or cut short after {rows} rows: {reason:.200}")


def _names(line: str, delimiter: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([line], delimiter=delimiter or _delimiter(line), strict=True), [])]


def _delimiter(line: str) -> str:
    """Return the delimiter that a line of names has most of."""
    return max(DELIMITERS, key=line.count)


def _fault_of_names(names: Sequence[str]) -> str:
    """Return why these are no names of columns; empty if they are."""
    if not names or len(names) > COLUMNS_MAX:
        return f"{len(names)} columns"
    if "" in names:
        return f"column {names.index('') + 1} has no name"
    repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
    return "" if repeated is None else f"two columns are named {repeated!r:.80}"


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
