"""Contents of a text to a reader of training logs: its runs, the rows of each set without ids, the report."""

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from crosswind.data.lake.lake import set_of
from crosswind.data.schema.run import Run
from crosswind.ingest.reader.reader import Context, Reader, Report

SECOND = 1_000_000_000
CHANGED = 1_800_000_000 * SECOND  # when the files of these tests were last changed, unless a test says otherwise
HERE = Context("test")


@dataclass(frozen=True)
class LogRecords:
    """The records of one file."""

    runs: list[Run]
    rows: dict[str, list[dict[str, object]]]
    report: Report

    def steps(self) -> list[tuple[object, object, object]]:
        """Start, number and duration of each."""
        return [(row["ts_ns"], row["step"], row["duration_seconds"]) for row in self.rows.get("step", [])]

    def values(self, step: int) -> dict[object, object]:
        """Return the values recorded of a step, by name."""
        return {row["name"]: row["value"] for row in self.rows.get("progress", []) if row["step"] == step}


def read_log(reader: Reader, path: Path, *, changed_ns: int | None = None, context: Context = HERE) -> LogRecords:
    """Reads a file, or first makes it seem to have been changed then."""
    if changed_ns is not None:
        os.utime(path, ns=(changed_ns, changed_ns))
    report = Report(str(path), reader.name)
    runs, rows = [], {}
    for record in reader.read(path, report, context):
        if isinstance(record, pa.Table):
            rows.setdefault(set_of(record.schema).name, []).extend(record.to_pylist())
        elif isinstance(record, Run):
            runs.append(record)
    return LogRecords(runs, rows, report)


def read_text(reader: Reader, folder: Path, text: str, *, context: Context = HERE) -> LogRecords:
    """Reads a text as a file changed at CHANGED."""
    path = folder / "train.log"
    path.write_text(text)
    return read_log(reader, path, changed_ns=CHANGED, context=context)
