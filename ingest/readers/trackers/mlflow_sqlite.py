"""Runs from MLflow's tracking database, when that is an SQLite file such as mlflow.db."""

import math
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.run import Run
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.scalars import PARAMETERS_MAX, scalar_of, storable
from crosswind.ingest.readers.sqlite_file import columns_of, has_tables, opened
from crosswind.ingest.readers.trackers.mlflow_run import MILLISECOND_NS, state_of, time_of
from crosswind.ingest.readers.trackers.progress_rows import Value, fault_of, progress

NEEDED = ("experiments", "runs", "metrics", "params", "tags", "latest_metrics")
LARGEST = sys.float_info.max  # MLflow's stand-in for infinity, which SQLite would not take
RUNS = """
    select run_uuid, r.name, status, start_time, end_time, r.lifecycle_stage, e.name
    from runs r left join experiments e on e.experiment_id = r.experiment_id order by start_time, run_uuid
"""


@dataclass(frozen=True)
class MlflowSqliteReader:
    """One run per run: its metrics as progress, its parameters as configuration."""

    name: ClassVar[str] = "mlflow_sqlite"
    description: ClassVar[str] = "MLflow's tracking database as an SQLite file (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the file is an SQLite file with MLflow's tables."""
        return has_tables(path, head, NEEDED)

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Run | pa.Table]:
        """Yield the values of each run, then the run. Raises: MalformedError, UnavailableError.

        Source: mlflow/store/tracking/dbmodels/models.py and sqlalchemy_store.py.
        """
        with opened(path, report, NEEDED) as database:
            for row in database.execute(RUNS):
                names = ("run_id", "run_name", "status", "start_time", "end_time", "lifecycle_stage", "experiment")
                yield from _run(database, dict(zip(names, row, strict=True)), report, context)


def _run(
    database: sqlite3.Connection, row: Mapping[object, object], report: Report, context: Context
) -> Iterator[Run | pa.Table]:
    tracker_id = str(row["run_id"])
    if row["lifecycle_stage"] == "deleted":
        report.notes.append(f"run {tracker_id:.40} was deleted in MLflow: left out")
        return
    run_id = imported_id("mlflow", context.system, tracker_id)  # as in the file store
    yield from progress(run_id, _values(database, tracker_id, report), report)
    tags = {name: text for name, text in _texts(database, "tags", tracker_id, report) if not name.startswith("mlflow.")}
    named = {"name": storable(str(row["run_name"]))} if row["run_name"] else {}
    report.read += 1
    yield Run(
        run_id,
        storable(str(row["experiment"] or ""), 200) or context.workload or "unknown",
        context.system,
        state_of(row, report),
        configuration={name: scalar_of(text) for name, text in _texts(database, "params", tracker_id, report)},
        started_ns=time_of(row, "start_time", report),
        ended_ns=time_of(row, "end_time", report),
        tags={"imported_from": "mlflow", "imported_id": storable(tracker_id)} | named | tags,
    )


def _values(database: sqlite3.Connection, tracker_id: str, report: Report) -> Iterator[Value]:
    is_nan = "is_nan" if "is_nan" in columns_of(database, "metrics") else "0"
    ask = f"select key, value, timestamp, step, {is_nan} from metrics where run_uuid = ? order by rowid"  # noqa: S608
    for name, number, milliseconds, step, nan in database.execute(ask, [tracker_id]):
        if not isinstance(milliseconds, int) or not isinstance(step, int) or not isinstance(number, int | float):
            report.skip(0, f"{name}", f"{number!r:.40} at {milliseconds!r:.40}, step {step!r:.40}; expected numbers")
            continue
        is_finite = not nan and abs(number) < LARGEST
        value = Value(milliseconds * MILLISECOND_NS, step, str(name), float(number) if is_finite else math.nan)
        if fault := fault_of(value):
            report.skip(0, value.name, fault)
        else:
            yield value


def _texts(database: sqlite3.Connection, table: str, tracker_id: str, report: Report) -> Iterator[tuple[str, str]]:
    ask = f"select key, value from {table} where run_uuid = ? order by rowid"  # noqa: S608 - a table named above
    for count, (name, text) in enumerate(database.execute(ask, [tracker_id])):
        if count == PARAMETERS_MAX:
            report.skip(0, table, f"run {tracker_id:.40} has more than {PARAMETERS_MAX} {table}")
            return
        yield storable(str(name)), storable(str(text or ""))
