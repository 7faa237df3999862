"""Runs of Lightning's CSVLogger: metrics.csv with hparams.yaml next to it."""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import Parameter
from crosswind.ingest.reader.lines import head_of, numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.scalars import REAL, WHOLE, flat
from crosswind.ingest.readers.trackers.progress_rows import Value, fault_of, progress
from crosswind.ingest.readers.trackers.yaml_file import mapping_in

METRICS, HYPERPARAMETERS = "metrics.csv", "hparams.yaml"
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
NOTE = "metrics.csv has no times: its own time is that of all values, and of the end"


@dataclass(frozen=True)
class LightningCsvReader:
    """One run per folder `version_N`; a lone metrics.csv is one without hyperparameters."""

    name: ClassVar[str] = "lightning_csv"
    description: ClassVar[str] = "Lightning CSVLogger's metrics.csv, or the folder that holds it"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the file has CSVLogger's name, and steps."""
        first = plain_head(head).split("\n", 1)[0].rstrip("\r")
        return path.name.removesuffix(".gz") == METRICS and "step" in first.split(",")

    def recognises_folder(self, path: Path) -> bool:
        """Return whether such a file is in the folder."""
        try:
            return (path / METRICS).is_file() and self.recognises(path / METRICS, head_of(path / METRICS))
        except (OSError, UnavailableError):
            return False

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Run | pa.Table]:
        """Yield the values, then their run. Raises: MalformedError, UnavailableError.

        Source: lightning.fabric.loggers.csv_logs, lightning.pytorch.loggers.csv_logs.
        """
        report.is_timed_by_file = True
        metrics = path / METRICS if path.is_dir() else path
        configuration = _configuration(path, report)
        lines = numbered_lines(metrics, report)
        number, text = next(lines, (0, ""))
        names = _cells(text)
        if "step" not in names or len(set(names)) < len(names):
            raise MalformedError(
                f"{metrics}: line {number}: {text[:200]!r}; expected different names, one of them step"
            )
        ended_ns = metrics.stat().st_mtime_ns
        rows = (row for row in (_row(line, names, report) for line in lines) if row)
        first = next(rows, None)
        if first is None:
            report.notes.append("nothing was logged: no run")
            return
        identity = (context.system, sorted(configuration.items()), sorted(first[1].items()))
        run_id = imported_id(self.name, *identity)
        yield from progress(run_id, _values(first, rows, ended_ns, report), report)
        report.read += 1
        report.notes.append(NOTE)
        yield Run(
            run_id,
            context.workload or "unknown",
            context.system,
            RunState.LOST,
            configuration=configuration,
            ended_ns=ended_ns,
            tags={"imported_from": self.name, "time_from": "modification time of the file"},
        )


def _configuration(path: Path, report: Report) -> dict[str, Parameter]:
    """Return the hyperparameters; none, and the reason in the report, if they cannot be read."""
    if not path.is_dir() or not (path / HYPERPARAMETERS).is_file() or not (path / HYPERPARAMETERS).stat().st_size:
        return {}
    try:
        return flat(mapping_in(path / HYPERPARAMETERS))
    except (MalformedError, UnavailableError) as error:
        report.skip(0, HYPERPARAMETERS, str(error))
        return {}


Row = tuple[int, dict[str, str]]  # line, cells by name


def _cells(text: str) -> list[str]:
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error:
        return []


def _row(line: tuple[int, str], names: Sequence[str], report: Report) -> Row | None:
    number, text = line
    cells = _cells(text)
    if len(cells) != len(names):
        report.skip(number, text, f"{len(cells)} cells; expected {len(names)}")
        return None
    row = dict(zip(names, cells, strict=True))
    if not WHOLE.fullmatch(row["step"]):
        report.skip(number, text, f"step {row['step'][:40]!r} is no whole number")
        return None
    return number, {name: cell for name, cell in row.items() if cell}


def _values(first: Row, others: Iterator[Row], ts_ns: int, report: Report) -> Iterator[Value]:
    yield from _values_of(first, ts_ns, report)
    for row in others:
        yield from _values_of(row, ts_ns, report)


def _values_of(row: Row, ts_ns: int, report: Report) -> Iterator[Value]:
    number, cells = row
    for name, cell in cells.items():
        if name == "step":
            continue
        if not REAL.fullmatch(cell) and cell not in NOT_FINITE:
            report.skip(number, json.dumps(cells)[:200], f"{name} is {cell[:40]!r}; expected a number")
            continue
        value = Value(ts_ns, int(cells["step"]), name, NOT_FINITE[cell] if cell in NOT_FINITE else float(cell))
        if fault := fault_of(value):
            report.skip(number, name, fault)
        else:
            yield value
