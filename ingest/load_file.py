"""Files of others into the store, exactly once; a file that grew gives only what is new."""

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from sqlalchemy.exc import IntegrityError

from crosswind.data.catalog.read_files import ReadFile
from crosswind.data.job import Job
from crosswind.data.jobs import JOB, job_table
from crosswind.data.lake import set_of
from crosswind.data.publish import Staged, drop
from crosswind.data.run import Run
from crosswind.data.store import Store
from crosswind.data.trial import History
from crosswind.ingest.digests import Digests, digests_of
from crosswind.ingest.distinct import distinct, without_known
from crosswind.ingest.load import Loaded
from crosswind.ingest.readers.reader import Context, Reader, Record, Report

CELLS_MAX = 4_000_000  # of a part: rows x columns; what is read of a file is never all in memory
BYTES_MAX = 1 << 27  # of a part in memory: texts may be long
JOBS_AT_ONCE = 20_000
AHEAD_NS = 86_400_000_000_000  # by which clocks and time zones may be wrong


def load_file(store: Store, path: Path, reader: Reader, loaded: Loaded, *, context: Context) -> None:
    """Stores what a reader makes of somebody else's file or folder; the same content again changes nothing.

    Raises: MalformedError, UnavailableError; nothing of the file is stored then.
    """
    scope, report = _scope(reader, context), Report(str(path), reader.name)
    loaded.reports.append(report)
    with store.catalog.read() as session:
        earlier = session.read_files.of_path(scope, str(path.resolve()))
    digests = digests_of(path, [each.size_bytes for each in earlier])
    identity = hashlib.sha256(f"{scope} {digests.whole}".encode()).hexdigest()
    with store.catalog.read() as session:
        is_known = session.has_batch(identity)
    if is_known:
        report.notes.append("was ingested before: nothing changed")
        loaded.duplicates += 1
        return
    for begun in (each for each in earlier if each.parts):  # killed between storing them and noting it
        store.lake.remove(begun.parts)
    known = next((each for each in earlier if not each.parts and digests.starts_with(each)), None)
    taken = _Taken(store, identity, report, dict(known.rows) if known else {}, is_anew=bool(earlier) and known is None)
    try:
        taken.read(reader.read(path, report, context))
        taken.store(_note(scope, path, digests), loaded)
    finally:
        drop(taken.staged)
    if known:
        report.notes.append(f"was ingested before up to byte {known.size_bytes}: rows from there on are new")


def _scope(reader: Reader, context: Context) -> str:
    """Digest of what, besides its content, decides what a file becomes."""
    told = {name: str(value) for name, value in vars(context).items()}
    return hashlib.sha256(json.dumps([reader.name, told]).encode()).hexdigest()


def _note(scope: str, path: Path, digests: Digests) -> ReadFile:
    return ReadFile(scope, digests.lines, str(path.resolve()), digests.lines_bytes, {}, ())


@dataclass
class _Taken:
    """What came of one file, on its way into the store: tables as hidden files, records in memory."""

    into: Store
    identity: str
    report: Report
    known: dict[str, int]  # rows of each set that are stored already: its first ones
    is_anew: bool  # other content stood there before: a database that grew, or another export
    rows: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, list[pa.Table]] = field(default_factory=dict)
    staged: list[Staged] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    histories: list[History] = field(default_factory=list)
    stored_rows: int = 0
    told_ns: int = field(default_factory=time.time_ns)

    def read(self, records: Iterable[Record]) -> None:
        """Takes in what a reader gives."""
        for record in records:
            match record:
                case Job():
                    self.jobs.append(record)
                    if len(self.jobs) == JOBS_AT_ONCE:
                        self._take_jobs()
                case Run():
                    self.runs.append(record)
                case History():
                    self.histories.append(record)
                case _:
                    self._take(record)
        self._take_jobs()
        for name in list(self.waiting):
            self._stage(name)

    def _take_jobs(self) -> None:
        if self.jobs:
            self._take(job_table(self.jobs, told_ns=0))
            self.jobs = []

    def _take(self, table: pa.Table) -> None:
        name = set_of(table.schema).name
        before = self.rows.get(name, 0)
        self.rows[name] = before + len(table)
        if name == JOB.name:  # told anew, they hold: an account may have changed since
            times = np.arange(self.told_ns + before, self.told_ns + self.rows[name])
            table = table.set_column(0, table.schema.field("ts_ns"), pa.array(times))
        else:
            table = table.slice(max(0, self.known.get(name, 0) - before))
        waiting = self.waiting.setdefault(name, [])
        waiting.append(table)
        is_large = sum(each.nbytes for each in waiting) > BYTES_MAX
        if is_large or sum(len(each) * each.num_columns for each in waiting) > CELLS_MAX:
            self._stage(name)

    def _stage(self, name: str) -> None:
        table = pa.concat_tables(self.waiting.pop(name))
        if not len(table):
            return
        if name == JOB.name:
            with self.into.catalog.write() as session:
                table = session.people.hidden(table)
        else:
            table = self._credible(name, table)
            if self.is_anew:
                table = without_known(self.into.lake, table)
            before, table = len(table), distinct(table)
            if len(table) < before:
                self.report.notes.append(f"{before - len(table)} rows of {name} told twice: one of each was kept")
        part = f"{self.identity[:32]}-{len(self.parts)}"
        self.parts.append(part)
        self.staged += self.into.lake.stage({part: table})
        self.stored_rows += len(table)

    def _credible(self, name: str, table: pa.Table) -> pa.Table:
        """The rows of times that have been: a clock that is wrong by years would stand in every query's way."""
        times = table["ts_ns"].to_numpy()
        wrong = (times < 0) | (times > self.told_ns + AHEAD_NS)
        if not wrong.any():
            return table
        first = np.datetime64(int(times[wrong][0]), "ns")
        self.report.skip(0, "", f"{wrong.sum()} rows of {name} from before 1970 or from the future, such as {first}")
        return table.filter(pa.array(~wrong))

    def store(self, note: ReadFile, loaded: Loaded) -> None:
        """Makes all of it appear: rows first, then, at once, the records and that the file was read."""
        files = self.into.catalog
        with files.write() as session:
            session.read_files.put(replace(note, parts=tuple(self.parts)))
        self.into.lake.publish(self.staged)
        try:
            with files.write() as session:
                row_count = self.report.read
                session.add_batch(self.identity, Path(note.path).name, row_count=row_count, skipped=self.report.skipped)
                session.read_files.put(replace(note, rows=self.rows))
                for run in self.runs:
                    session.runs.merge(run)
                for history in self.histories:
                    session.studies.merge(history)
        except IntegrityError:  # somebody else stored the same file at the same moment: the same parts, once
            self.report.notes.append("was ingested by somebody else meanwhile: nothing changed")
            return
        loaded.batches += 1
        loaded.jobs += self.rows.get(JOB.name, 0)
        loaded.rows += self.stored_rows - self.rows.get(JOB.name, 0)
        loaded.runs |= {run.run_id for run in self.runs}
        loaded.trials += sum(len(history.trials) for history in self.histories)
