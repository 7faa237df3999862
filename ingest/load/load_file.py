"""Loading other tools' files into the store, exactly once; of a file that grew only the new part."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from sqlalchemy.exc import IntegrityError

from crosswind.data.catalog.read_files import ReadFile
from crosswind.data.devices.computing import computing_device
from crosswind.data.devices.sheets import device_named
from crosswind.data.files import make_private
from crosswind.data.lake.lake import set_of
from crosswind.data.lake.landings import landings_of
from crosswind.data.lake.locks import alone
from crosswind.data.lake.publish import Staged, drop
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.job import Job
from crosswind.data.schema.landing import Landing
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import History
from crosswind.data.store.jobs import JOB, job_table
from crosswind.data.store.run_owners import settle_owners
from crosswind.data.store.store import Store
from crosswind.ingest.load.digests import digests_of
from crosswind.ingest.load.distinct import ChangedJobs, RowIdentity, distinct, without_stored
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.waiting_runs import WaitingRuns
from crosswind.ingest.reader.reader import Context, MappedReader, Reader, Record, Report, read_with

CELLS_MAX = 4_000_000  # of a part: rows x columns; a file is never in memory as a whole
BYTES_MAX = 1 << 27  # of a part in memory: texts may be long
JOBS_AT_ONCE = 20_000
MEANWHILE = "was ingested by somebody else meanwhile: nothing changed"
PATIENCE_SECONDS = 60.0  # for somebody else who reads the same file
STRANGE_MAX = 5  # devices that are noted
AHEAD_NS = 86_400_000_000_000  # by which clocks and time zones may be wrong


@dataclass(frozen=True)
class Named:
    """A temporary file, with the URL that it came from as its name."""

    path: Path
    name: str


def load_file(store: Store, file: Path | Named, reader: Reader, loaded: Loaded, *, context: Context) -> bool:
    """Store another tool's file or folder as a reader understands it; the same content again changes nothing.

    Returns whether anything was stored from it, now or before.
    Raises: MalformedError, UnavailableError; nothing of the file is stored then.
    """
    path, shown = (file, str(file)) if isinstance(file, Path) else (file.path, file.name)
    name = str(file.resolve()) if isinstance(file, Path) else file.name
    reading = _Reading(store, path, name, reader, context, Report(shown, reader.name))
    loaded.reports.append(reading.report)
    with _alone(store.home / "reading", f"{reading.scope} {name}") as is_ours, _memory_used_again():
        if not is_ours:
            raise UnavailableError(f"{shown}: somebody else is ingesting it; ingest it again when they are done")
        return _load(reading, loaded)


@contextmanager
def _alone(folder: Path, what: str) -> Iterator[bool]:
    """Hold the lock of this reading, and yield whether we have it; then unnoted parts in the lake are dead readers'."""
    slot = hashlib.sha256(what.encode(errors="surrogateescape")).hexdigest()[:3]  # so there are never many files
    with ExitStack() as held:
        try:
            make_private(folder)
            is_ours = held.enter_context(alone(folder / f"{slot}.lock", PATIENCE_SECONDS))
        except OSError as error:
            raise UnavailableError(f"{error.filename or folder}: {error.strerror}") from error
        yield is_ours


@contextmanager
def _memory_used_again() -> Iterator[None]:
    """Let Arrow use the system's allocator, which reuses the memory of the block before at once.

    Arrow's own allocator returns it to the kernel between two blocks, which took a fifth of a file's processor time.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


@dataclass(frozen=True)
class _Reading:
    """One file that is being read; `name` identifies it in the catalog."""

    into: Store
    path: Path
    name: str
    reader: Reader
    context: Context
    report: Report

    @property
    def scope(self) -> str:
        """Return a digest of what, besides its content, decides what the file becomes."""
        return _scope(self.reader, self.context)

    def earlier(self) -> list[ReadFile]:
        """Return the notes of earlier readings of this path, longest content first."""
        with self.into.catalog.read() as session:
            return session.read_files.of_path(self.scope, self.name)

    def is_stored(self, identity: str) -> bool:
        """Return whether the same content was stored before."""
        with self.into.catalog.read() as session:
            return session.has_batch(identity)


def _load(reading: _Reading, loaded: Loaded) -> bool:
    report, earlier = reading.report, reading.earlier()
    digests = digests_of(reading.path, [file.size_bytes for file in earlier])
    identity = hashlib.sha256(f"{reading.scope} {digests.whole}".encode()).hexdigest()
    if reading.is_stored(identity):
        report.notes.append("was ingested before: nothing changed")
        loaded.duplicates += 1
        return True
    predecessor = next((file for file in earlier if not file.parts and digests.starts_with(file)), None)
    taken = _taken(reading, identity, earlier, predecessor)
    try:
        taken.read(read_with(reading.reader, reading.path, report, reading.context))
        report.notes += _strange_devices(taken.runs)
        if not taken.holds_anything:
            return False
        taken.store(ReadFile(reading.scope, digests.lines, reading.name, digests.lines_bytes, {}, ()), loaded)
        settle_owners(reading.into)
    finally:
        drop(taken.staged)
        taken.runs.close()
    if predecessor:
        report.notes.append(f"was ingested before up to byte {predecessor.size_bytes}: rows from there on are new")
    return True


def _strange_devices(runs: Iterable[Run]) -> list[str]:
    """Return a note for each device that computed and is not in the table of devices; the most frequent ones."""
    names = Counter(computing_device(run.facts, run.configuration) for run in runs)
    strange = [(name, count) for name, count in names.most_common() if name and device_named(name) is None]
    return [
        f"device {name:.80} of {count} runs is not in the table of devices: predictions have no peak figures of it"
        for name, count in strange[:STRANGE_MAX]
    ]


def _taken(reading: _Reading, identity: str, earlier: list[ReadFile], predecessor: ReadFile | None) -> "_Taken":
    begun = tuple(part for file in earlier for part in file.parts)
    replaced = tuple(sorted({f"part-{part[:32]}-" for part in (identity, *begun)}))
    return _Taken(
        reading.into,
        identity,
        reading.report,
        earlier_rows=dict(predecessor.rows) if predecessor else {},
        same=RowIdentity(by_keys=bool(earlier), replaced=replaced),
        changed_jobs=ChangedJobs(reading.into.lake, replaced) if earlier else None,
        begun=begun,
        replaces=isinstance(reading.reader, MappedReader),
    )


def _scope(reader: Reader, context: Context) -> str:
    """Return a digest of what, besides its content, decides what a file becomes."""
    mapping = [reader.mapping] if isinstance(reader, MappedReader) else []
    return hashlib.sha256(json.dumps([reader.name, context.options, *mapping]).encode()).hexdigest()


@dataclass
class _Taken:
    """The content of one file on its way into the store: tables as hidden files, records in memory."""

    into: Store
    identity: str
    report: Report
    earlier_rows: dict[str, int]  # rows of each set that are stored already: the first ones
    same: RowIdentity
    changed_jobs: ChangedJobs | None  # None if nothing was read from there before
    begun: tuple[str, ...]  # parts of a reader that was killed before noting them
    replaces: bool = False  # records that were made of the same rows by another map
    rows: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, list[pa.Table]] = field(default_factory=dict)
    staged: list[Staged] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    landings: list[Landing] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    runs: WaitingRuns = field(default_factory=WaitingRuns)
    histories: list[History] = field(default_factory=list)
    stored: dict[str, int] = field(default_factory=dict)  # rows of each set that are new
    read_ns: int = field(default_factory=time.time_ns)

    def read(self, records: Iterable[Record]) -> None:
        """Take the tables and records of a reader."""
        for record in records:
            match record:
                case Job():
                    self.jobs.append(record)
                    if len(self.jobs) == JOBS_AT_ONCE:
                        self._take_jobs()
                case Run():
                    self.runs.add(record)
                case History():
                    self.histories.append(record)
                case _:
                    self._take(record)
        self._take_jobs()
        for name in list(self.waiting):
            self._stage(name)

    @property
    def holds_anything(self) -> bool:
        """Return whether the reader gave anything at all."""
        return bool(any(self.rows.values()) or len(self.runs) or self.histories)

    def _take_jobs(self) -> None:
        if self.jobs:
            self._take(job_table(self.jobs, reported_ns=0))
            self.jobs = []

    def _take(self, table: pa.Table) -> None:
        name = set_of(table.schema).name
        before = self.rows.get(name, 0)
        self.rows[name] = before + len(table)
        if name == JOB.name:  # later accounts of a job replace earlier ones
            times = np.arange(self.read_ns + before, self.read_ns + self.rows[name])
            table = table.set_column(0, table.schema.field("ts_ns"), pa.array(times))
        else:
            table = table.slice(max(0, self.earlier_rows.get(name, 0) - before))
        waiting = self.waiting.setdefault(name, [])
        waiting.append(table)
        is_large = sum(portion.nbytes for portion in waiting) > BYTES_MAX
        if is_large or sum(len(portion) * portion.num_columns for portion in waiting) > CELLS_MAX:
            self._stage(name)

    def _stage(self, name: str) -> None:
        table = pa.concat_tables(self.waiting.pop(name))
        if not len(table):
            return
        table = self._new_jobs(table) if name == JOB.name else self._new_rows(name, table)
        if not len(table):
            return
        part = f"{self.identity[:32]}-{len(self.parts)}"
        self.parts.append(part)
        self.landings += landings_of([table])
        self.staged += self.into.lake.stage({part: table})
        self.stored[name] = self.stored.get(name, 0) + len(table)

    def _new_jobs(self, table: pa.Table) -> pa.Table:
        with self.into.catalog.write() as session:
            table = session.people.hidden(table)
        return self.changed_jobs.of(table) if self.changed_jobs else table

    def _new_rows(self, name: str, table: pa.Table) -> pa.Table:
        table = self._credible(name, table)
        before, table = len(table), distinct(table)
        if len(table) < before:
            self.report.notes.append(f"{before - len(table)} rows of {name} were repeated: one of each was kept")
        same = replace(self.same, by_keys=True, is_timed_by_file=True) if self.report.is_timed_by_file else self.same
        before, table = len(table), without_stored(self.into.lake, table, same)
        if len(table) < before:
            self.report.notes.append(f"{before - len(table)} rows of {name} were stored before: left out")
        return table

    def _credible(self, name: str, table: pa.Table) -> pa.Table:
        """Return the rows of credible times: rows of a clock that is wrong by years would hamper every query."""
        times = table["ts_ns"].to_numpy()
        wrong = (times < 0) | (times > self.read_ns + AHEAD_NS)
        if not wrong.any():
            return table
        first = np.datetime64(int(times[wrong][0]), "ns")
        self.report.skip(0, "", f"{wrong.sum()} rows of {name} from before 1970 or from the future, such as {first}")
        return table.filter(pa.array(~wrong))

    def store(self, note: ReadFile, loaded: Loaded) -> None:
        """Make all of it visible: rows first, then in one transaction the records and the note of the reading."""
        files = self.into.catalog
        with files.write() as session:
            if session.has_batch(self.identity):
                self.report.notes.append(MEANWHILE)
                return
            session.read_files.put(replace(note, rows=self.earlier_rows, parts=tuple(self.parts)))
        published = self.into.lake.publish(self.staged)
        self.into.lake.remove(set(self.begun) - set(self.parts))
        try:
            with files.write() as session:
                row_count = self.report.read
                skipped, landings = self.report.skipped, self.landings
                session.lake_files.add(published.files)
                session.add_batch(
                    self.identity, Path(note.path).name, row_count=row_count, skipped=skipped, landings=landings
                )
                session.read_files.put(replace(note, rows=self.rows))
                if self.replaces:
                    session.runs.put_all(self.runs)
                for run in () if self.replaces else self.runs:
                    session.runs.merge(run)
                for history in self.histories:
                    session.studies.merge(history)
        except IntegrityError:  # somebody else stored the same file at the same moment: the same parts, once
            self.report.notes.append(MEANWHILE)
            return
        loaded.batches += 1
        jobs = self.stored.get(JOB.name, 0)
        loaded.jobs += jobs
        loaded.rows += sum(self.stored.values()) - jobs
        loaded.runs |= self.runs.ids
        loaded.trials += sum(len(history.trials) for history in self.histories)
