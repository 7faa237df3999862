"""Tables in CSV, JSON lines or Parquet, read as a map says, or as their header shows."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import History
from crosswind.ingest.reader.lines import changed_ns
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.readers.binary import plain_bytes
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.tables.cells import Cells
from crosswind.ingest.readers.tables.layouts import layout_of
from crosswind.ingest.readers.tables.operation_rows import OperationRows
from crosswind.ingest.readers.tables.run_rows import RunRows
from crosswind.ingest.readers.tables.step_rows import StepRows, TableRuns
from crosswind.ingest.readers.tables.table_file import PARQUET, Chunk, Table, header_of, opened, parquet_names
from crosswind.ingest.readers.tables.table_map import NAMED, TableMap
from crosswind.ingest.readers.tables.trial_rows import TrialRows

BEFORE_NS = 30 * 86_400 * 1_000_000_000  # before the table's last change, when rows without times began
SUFFIXES = (".gz", ".csv", ".tsv", ".txt", ".parquet", ".jsonl", ".ndjson", ".json")


class Rows(Protocol):
    """One kind of rows, on their way to records."""

    def records(self, chunk: Chunk) -> Iterator[Run | pa.Table | History]:
        """Yield what some rows make. Raises: MalformedError."""
        ...

    def end(self) -> Iterator[Run | pa.Table | History]:
        """Yield what is only complete after all rows. Raises: MalformedError."""
        ...


@dataclass(frozen=True)
class TableReader:
    """One table of runs, steps, operations or trials; without a map it is one whose header shows what it is."""

    table_map: TableMap | None = None
    name: ClassVar[str] = "table"
    description: ClassVar[str] = "CSV, JSON lines or Parquet, by a map (also gzip)"

    @property
    def mapping(self) -> str:
        """Return the map as text, of equal maps the same: what, besides the file, decides what it becomes."""
        return self.table_map.text if self.table_map else ""

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the header is that of a known layout."""
        if plain_bytes(head).startswith(PARQUET):
            return layout_of(parquet_names(path)) is not None
        return layout_of(header_of(head)) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield what the rows make, a chunk at a time. Raises: MalformedError, UnavailableError."""
        report.is_timed_by_file = True  # where rows have times of their own, those are keys as good
        with opened(path, report, self.table_map.delimiter if self.table_map else "") as table:
            table_map = self._bound(table, path)
            report.notes.append(f"read as a table of {table_map.kind}, by {table_map.path}")
            clock = Clock(context.zone)
            rows: Rows | None = None
            for chunk in table.chunks():
                rows = rows or _rows(table_map, table, path, _first(chunk), clock=clock, given=(report, context))
                yield from rows.records(chunk)
            if rows is not None:
                yield from rows.end()
            report.notes += clock.notes()
            report.quoted.sort(key=lambda skipped: skipped.line)  # of a piece, lines that are no rows come first
            if not report.read and not report.skipped:
                report.notes.append("no rows after the header")

    def _bound(self, table: Table, path: Path) -> TableMap:
        table_map = self.table_map or layout_of(table.names)
        if table_map is None:
            more = f" and {len(table.names) - NAMED} more" if len(table.names) > NAMED else ""
            columns = ", ".join(table.names[:NAMED]) + more
            raise MalformedError(f"{path}: columns {columns}; expected a known layout, or --map FILE that names them")
        return table_map.bound(table.names, str(path))


def _first(chunk: Chunk) -> str:
    _, row = next(chunk.rows())
    return json.dumps(row, sort_keys=True, default=str)


def _rows(  # noqa: PLR0913
    table_map: TableMap, table: Table, path: Path, first: str, *, clock: Clock, given: tuple[Report, Context]
) -> Rows:
    report, context = given
    base_ns, stem = changed_ns(path) - BEFORE_NS, _stem(path)
    if table_map.kind in ("runs", "trials"):
        cells = Cells(table_map, table.is_typed, clock)
        of_runs = table_map.kind == "runs"
        return RunRows(cells, context, report, base_ns) if of_runs else TrialRows(cells, context, report, stem)
    runs = TableRuns(table_map, context, stem, first)
    kind = StepRows if table_map.kind == "steps" else OperationRows
    return kind(table_map, report, runs, base_ns)


def _stem(path: Path) -> str:
    """Return the file's name without what says how it is written."""
    stem = path.name
    while stem.lower().endswith(SUFFIXES):
        stem = stem.rpartition(".")[0]
    return stem or "table"
