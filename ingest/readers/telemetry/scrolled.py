"""Scrolled output of GPU tools: headers, and below each a line for every GPU and instant."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.lines import numbered_lines
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.telemetry.gpu_rows import GpuRows


class Scrolled(Protocol):
    """One pass over the lines of a tool; `names` are the columns of the newest header."""

    clock: Clock
    rows: GpuRows
    names: list[str]

    def tables(self, number: int, text: str) -> Iterator[pa.Table]:
        """Yield the tables that a line and those before it complete. Raises: MalformedError."""
        ...


def scrolled_tables(path: Path, report: Report, reading: Scrolled) -> Iterator[pa.Table]:
    """Yield the rows in the file's order; bad lines go to the report.

    Raises: UnavailableError, MalformedError for a file without a header, or without one that has times.
    """
    for number, text in numbered_lines(path, report):
        try:
            yield from reading.tables(number, text)
        except MalformedError as error:
            if not reading.names:
                raise
            report.skip(number, text, str(error))
    yield from reading.rows.rest()
    reading.rows.note()
    report.notes += reading.clock.notes()
