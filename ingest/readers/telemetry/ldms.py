"""Metric sets of LDMS, written by its store_csv."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.lines import Block, blocks, lines_of, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS
from crosswind.ingest.readers.telemetry.csv_columns import CsvColumns, Rows
from crosswind.ingest.readers.telemetry.ldms_header import (
    KINDS,
    PRODUCER,
    TIMES,
    Header,
    header_of,
    is_data,
    schema_of,
    separate_header,
)
from crosswind.ingest.readers.telemetry.ldms_rows import TimedRows
from crosswind.ingest.readers.telemetry.ldms_sets import TICKS, Layout, layout, remark_on_ticks, rest_sets

NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._:@+-]{0,252}")
EXPECTED = "expected a line such as #Time,Time_usec,ProducerName,... in it or in its .HEADER file next to it"


@dataclass(frozen=True)
class LdmsReader:
    """Rows of our own sets if an LDMS sampler is documented to have the same values, and of a set `ldms_<schema>`.

    Source: store_csv(7), and store_csv.c and store_csv_common.c, of LDMS
    """

    name: ClassVar[str] = "ldms"
    description: ClassVar[str] = "LDMS metric sets, written by store_csv (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the file begins with the store's header, or with rows whose header is in a file next to it."""
        first = plain_head(head).split("\n", 1)[0].rstrip("\r")
        if header_of(first) or KINDS.match(first):
            return True
        return is_data(first) and separate_header(path) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[pa.Table]:
        """Yield the rows in the file's order. Raises: MalformedError (no header), UnavailableError."""
        separate = separate_header(path)
        scan = _Headers(separate)
        for part in _parts(path, Report(report.path, report.format)):
            scan.look(part)
        if scan.is_about_types and not scan.layouts:
            report.notes.append("says the types of another file's columns, which holds the rows")
            return
        if not scan.layouts:
            raise MalformedError(f"{path}: no header; {EXPECTED}")
        reading = Reading(report, context, scan.layouts, schema_of(path))
        for part in _parts(path, report):
            yield from reading.tables(part, separate)
        reading.note()


@dataclass(frozen=True)
class _Part:
    """Lines of a block of which only the first may be a header."""

    line: str  # the line that begins with #, if any
    block: Block


def _parts(path: Path, report: Report) -> Iterator[_Part]:
    for block in blocks(path, report):
        start, number = 0, block.number
        while start < len(block.data):
            end = block.data.find(b"\n#", start) + 1 or len(block.data)
            data = block.data[start:end]
            line, rest = b"", data
            if data.startswith(b"#"):
                line, _, rest = data.partition(b"\n")
            yield _Part(line.decode().rstrip("\r"), Block(number + bool(line), rest))
            start = end
            number += data.count(b"\n") if start < len(block.data) else 0


@dataclass
class _Headers:
    """The headers of a file, before its rows are read: a set has the columns of all of them."""

    current: Header | None
    layouts: dict[Header, Layout] = field(default_factory=dict)
    is_about_types: bool = False

    def look(self, part: _Part) -> None:
        """Take the part's header, and the facts in its first row that decide about columns."""
        if part.line:
            self.is_about_types = self.is_about_types or KINDS.match(part.line) is not None
            self.current = header_of(part.line) or self.current
        if self.current and self.current not in self.layouts:
            first = part.block.data.lstrip().split(b"\n", 1)[0].decode()
            if first or part.line:
                self.layouts[self.current] = layout(self.current, _ticks(self.current, first))


def _ticks(header: Header, first: str) -> int | None:
    """Return clock ticks a second, if they are in the first row and not 0."""
    cells = first.split(",")
    if TICKS not in header.names or len(cells) != len(header.names):
        return None
    ticks = cells[header.names.index(TICKS)].strip()
    return int(ticks) if re.fullmatch("[0-9]{1,9}", ticks) else None


@dataclass
class Reading:
    """One pass over the rows of a file."""

    report: Report
    context: Context
    layouts: Mapping[Header, Layout]
    schema: str
    current: Header | None = None
    remarks: Counter[str] = field(default_factory=Counter)
    sharers: set[str] = field(default_factory=set)  # nodes whose devices have the same names of columns

    def __post_init__(self) -> None:
        self.csv = {
            header: CsvColumns(self.report, file_layout.types()) for header, file_layout in self.layouts.items()
        }
        self.rest = rest_sets(self.schema, list(self.layouts.values()))

    def tables(self, part: _Part, separate: Header | None) -> Iterator[pa.Table]:
        """Yield the tables that the rows of a part become."""
        if part.line:
            self._turn_to(part)
        header = self.current or separate
        if not part.block.data or part.block.data.isspace():
            return
        if header is None:
            for number, text in lines_of(part.block):
                self.report.skip(number, text, f"a row in front of any header; {EXPECTED}")
        else:
            for table in self._tables(self.layouts[header], self.csv[header].rows(part.block)):
                self.report.read += len(table)
                yield table

    def _turn_to(self, part: _Part) -> None:
        header = header_of(part.line)
        if header is None:
            self.report.skip(part.block.number - 1, part.line, "a comment, which LDMS does not write")
            return
        if self.current not in (None, header):
            self.remarks["headers that say other columns than those before"] += 1
        self.current = header

    def _tables(self, file_layout: Layout, rows: Rows) -> Iterator[pa.Table]:
        times, nodes = self._times(file_layout, rows), self._nodes(file_layout, rows)
        good = np.flatnonzero((times >= 0) & nodes.is_valid().to_numpy(zero_copy_only=False))
        if not len(good):
            return
        taken = TimedRows(file_layout, rows, times, nodes, None if len(good) == rows.length else pa.array(good))
        for _, shares in groupby(file_layout.shares, key=lambda share: share.metric_set.name):
            yield taken.of_ours(list(shares))
        for metric_set, names in self.rest:
            yield taken.of_its_own(metric_set, names)

    def _times(self, file_layout: Layout, rows: Rows) -> Any:
        """Return nanoseconds since 1970; -1 for rows that are skipped for theirs."""
        names = file_layout.header.names
        place = names.index(file_layout.header.time)
        stamps = rows.columns[place].fill_null(-1).to_numpy()
        micros = np.rint(stamps * TIMES[file_layout.header.time])
        if file_layout.header.time == "Time_msec" and "Time_usec" in names:
            micros = micros + rows.columns[names.index("Time_usec")].fill_null(0).to_numpy()
        is_time = (micros >= EARLIEST_SECONDS * 1e6) & (micros <= LATEST_SECONDS * 1e6)
        for number, text in _lines(rows, np.flatnonzero(~is_time)):
            self.report.skip(number, text, f"{names[place]} is no time between 2001 and 2262")
        return np.where(is_time, micros, -1).astype(np.int64) * np.where(is_time, 1000, 1)

    def _nodes(self, file_layout: Layout, rows: Rows) -> pa.Array:
        """Return the host names; null for rows that are skipped for theirs."""
        producers = pc.utf8_trim_whitespace(rows.columns[file_layout.header.names.index(PRODUCER)]).dictionary_encode()
        names = [name or self.context.node for name in producers.dictionary.to_pylist()]
        if file_layout.names_devices:
            self.sharers.update(names)
        checked = pa.array([name if NAME.fullmatch(name) else None for name in names], pa.string())
        nodes = checked.take(producers.indices)
        for number, text in _lines(rows, np.flatnonzero(pc.is_null(nodes))):
            self.report.skip(number, text, f"{PRODUCER} is no host name; where it is empty, say --node")
        return nodes

    def note(self) -> None:
        """Note the assumptions made."""
        self.report.remark(self.remarks)
        if len(self.sharers) > 1:
            self.report.notes.append(
                f"columns name devices, and {len(self.sharers)} nodes share them: LDMS names those of the node that it "
                "saw first, so nodes with other devices need a schema of their own"
            )
        self.report.notes += dict.fromkeys(filter(None, map(remark_on_ticks, self.layouts.values())))


def _lines(rows: Rows, wanted: Any) -> list[tuple[int, str]]:
    """Return number and text of the lines of these rows."""
    lines = rows.lines() if len(wanted) else []
    return [lines[row] for row in wanted]
