"""From spools and files of others into the store, exactly once."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from sqlalchemy.exc import IntegrityError

from crosswind.data.catalog.catalog import Session
from crosswind.data.errors import MalformedError, ProjectError, UnavailableError
from crosswind.data.job import Job
from crosswind.data.lake import to_table
from crosswind.data.metric import MetricSet
from crosswind.data.run import Rank, Run, RunState
from crosswind.data.store import Store
from crosswind.ingest.readers.reader import Reader, Report
from crosswind.ingest.records import rank_of, run_of
from crosswind.ingest.segment import Frame, RecordFrame, RowsFrame
from crosswind.ingest.spool import RECOVERED, batch_id, read_segment, recover, sealed_segments


@dataclass
class Loaded:
    """What became of some spools or files."""

    batches: int = 0
    duplicates: int = 0
    rows: int = 0
    runs: set[str] = field(default_factory=set)
    jobs: int = 0
    problems: list[str] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)


@dataclass
class _Content:
    tables: dict[MetricSet, list[pa.Table]] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    ranks: list[Rank] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    writer_died: bool = False


def load_spool(store: Store, directory: Path) -> Loaded:
    """Stores every segment of a spool and removes what is stored; segments of dead writers are recovered first.

    A run whose writer died without saying how it ended becomes `lost`. A segment that cannot be understood is kept
    aside as `.rejected`, and said. Raises: UnavailableError when folder or store do not answer.
    """
    if not directory.is_dir():
        raise UnavailableError(f"spool {directory}: no such folder")
    loaded = Loaded()
    recover(directory)
    for path in sealed_segments(directory):
        try:
            load_segment(store, path, loaded)
            path.unlink(missing_ok=True)
        except MalformedError as error:
            loaded.problems.append(str(error))
            path.rename(path.with_suffix(".rejected"))
    return loaded


def load_segment(store: Store, path: Path, loaded: Loaded) -> None:
    """Stores one sealed segment; one that was stored before changes nothing. Raises: MalformedError."""
    identity = batch_id(path)
    with store.catalog.read() as session:
        if session.has_batch(identity):
            loaded.duplicates += 1
            return
    reader = read_segment(path)
    content = _content(store, reader, path)
    if reader.report.reason:
        content.problems.append(f"{path.name}: read up to frame {reader.report.frames}: {reader.report.reason}")
    if content.writer_died:
        content.runs += [replace(run, state=RunState.LOST) for run in content.runs if run.state == RunState.RUNNING]
    for number, tables in enumerate(content.tables.values()):
        store.lake.append(f"{identity[:32]}-{number}", pa.concat_tables(tables))
    row_count = sum(len(table) for tables in content.tables.values() for table in tables)
    loaded.problems += content.problems
    try:
        with store.catalog.write() as session:
            session.add_batch(identity, path.name, row_count=row_count, skipped=len(content.problems))
            _merge(session, content.runs, content.ranks)
    except IntegrityError:  # somebody stored the same batch at the same moment
        loaded.duplicates += 1
        return
    loaded.batches += 1
    loaded.rows += row_count
    loaded.runs |= {run.run_id for run in content.runs}


def load_file(store: Store, path: Path, reader: Reader, loaded: Loaded, *, system: str) -> None:
    """Stores what a reader makes of somebody else's file; the same content again changes nothing.

    Raises: MalformedError, UnavailableError; nothing of the file is stored then.
    """
    identity = _digest(path, reader.name, system)
    report = Report(str(path), reader.name)
    try:
        with store.catalog.write() as session:
            if session.has_batch(identity):
                report.notes.append("was ingested before: nothing changed")
                loaded.duplicates += 1
            else:
                loaded.jobs += _store_records(session, reader.read(path, report, system=system), loaded)
                session.add_batch(identity, path.name, row_count=report.read, skipped=report.skipped)
                loaded.batches += 1
    finally:
        loaded.reports.append(report)


def _store_records(session: Session, records: Iterable[Job | Run], loaded: Loaded) -> int:
    jobs = 0
    for record in records:
        if isinstance(record, Job):
            session.jobs.put(record)
            jobs += 1
        else:
            session.runs.merge(record)
            loaded.runs.add(record.run_id)
    return jobs


def _content(store: Store, frames: Iterable[Frame], path: Path) -> _Content:
    content = _Content()
    for frame in frames:
        try:
            _take(store, frame, content)
        except ProjectError as error:
            content.problems.append(f"{path.name}: {error}")
    return content


def _take(store: Store, frame: Frame, content: _Content) -> None:
    match frame:
        case RowsFrame(metric_set, columns):
            store.lake.check(metric_set)
            table = to_table(metric_set, columns)
            content.tables.setdefault(metric_set, []).append(table)
        case RecordFrame("run", value):
            content.runs.append(run_of(_named(value)))
        case RecordFrame("rank", value):
            content.ranks.append(rank_of(value))
        case RecordFrame(record, value) if record == RECOVERED:
            content.writer_died = True
            if value.get("torn_bytes"):
                raise MalformedError(f"{value['torn_bytes']} torn bytes were cut off ({value.get('reason')!s:.200})")
        case RecordFrame(record, _):
            raise MalformedError(f"record {record!r:.80}: expected run, rank or recovered")
        case _:
            pass  # a set announces itself; its rows carry it


def _named(value: Mapping[str, object]) -> dict[str, object]:
    """The record without facts it leaves open, so that they do not count as said."""
    return {name: item for name, item in value.items() if item is not None}


def _merge(session: Session, runs: Iterable[Run], ranks: Iterable[Rank]) -> None:
    for run in runs:
        session.runs.merge(run)
    for rank in ranks:
        session.runs.merge_rank(rank)


def _digest(path: Path, *context: str) -> str:
    digest = hashlib.sha256(json.dumps(context).encode())
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    return digest.hexdigest()
