"""Tables written for a test, and read by a map."""

from pathlib import Path

import yaml

from crosswind.data.schema.run import Run
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.readers.tables.table_map import TableMap
from crosswind.ingest.readers.tables.table_reader import TableReader


def map_of(text: str) -> TableMap:
    """The map in a text, called map.yaml."""
    return TableMap.of(yaml.safe_load(text), "map.yaml")


def read(path: Path, text: str | None, context: Context | None = None) -> tuple[list[Record], Report]:
    """Read a table by the map in a text; by its header without one."""
    report = Report(path.name, "table")
    reader = TableReader(map_of(text) if text else None)
    return list(reader.read(path, report, context or Context("here"))), report


def runs_of(path: Path, text: str | None, context: Context | None = None) -> list[Run]:
    """Read a table of which every row is understood, and return its runs."""
    records, report = read(path, text, context)
    assert report.quoted == []
    return [record for record in records if isinstance(record, Run)]
