"""Loading spools and other tools' files into the store, exactly once."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy.exc import IntegrityError

from crosswind.data.catalog.catalog import NewBatch, Session
from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.files import NoLocksError, lock_file, take_lock
from crosswind.data.lake.lake import Lake, set_of
from crosswind.data.lake.landings import landings_of
from crosswind.data.schema.batch import ForgottenError, is_young, made_in
from crosswind.data.schema.errors import (
    ForbiddenError,
    InvalidInputError,
    MalformedError,
    ProjectError,
    UnavailableError,
)
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.lake_file import LakeFile
from crosswind.data.schema.occupancy import Allocation, Placement
from crosswind.data.schema.run import Rank, Run
from crosswind.data.schema.steps import LOOP_SETS
from crosswind.data.store.jobs import JOB
from crosswind.data.store.store import Store
from crosswind.ingest.load.batch_builder import BatchBuilder, parse_quickly
from crosswind.ingest.load.binding import check_nodes, check_places, check_run_ids, own_runs
from crosswind.ingest.load.captured import tables_of
from crosswind.ingest.load.extent import believed, check_extent
from crosswind.ingest.probe.place import node_name
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.spool.abandoned import is_abandoned_in
from crosswind.ingest.spool.quarantine import keep_copy
from crosswind.ingest.spool.records import PLACES, in_one_order, injection_of, rank_of, run_of
from crosswind.ingest.spool.segment import Frame, RecordFrame, RowsFrame, SweepRows
from crosswind.ingest.spool.segment_reader import Readable, SegmentReader, Unpacked
from crosswind.ingest.spool.spool import RECOVERED, batch_id, recover, sealed_segments

QUOTED = 20  # refused frames of a segment that are reported one by one
OF_RUNS = {metric_set.name for metric_set in LOOP_SETS}


@dataclass
class Loaded:
    """The outcome of loading some spools or files."""

    batches: int = 0
    duplicates: int = 0
    rows: int = 0
    runs: set[str] = field(default_factory=set)
    jobs: int = 0
    trials: int = 0
    problems: list[str] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)


@dataclass
class _Content:
    builder: BatchBuilder
    traced: list[pa.Table] = field(default_factory=list)  # of traces that runs captured
    tables: list[pa.Table] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    ranks: list[Rank] = field(default_factory=list)
    places: list[Allocation | Placement] = field(default_factory=list)
    injections: list[Injected] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    refused_frames: int = 0
    files: tuple[LakeFile, ...] = ()  # that hold the tables, in an object store
    writer_died: bool = False

    def row_count(self) -> int:
        """Return the number of rows in all sets."""
        return sum(len(table) for table in self.tables)

    def lost_runs(self) -> set[str]:
        """Return the runs of dead writers."""
        if not self.writer_died:
            return set()
        timed = [table for table in self.tables if set_of(table.schema).name in OF_RUNS]
        return {run.run_id for run in self.runs} | {rank.run_id for rank in self.ranks} | _run_ids(timed)

    def run_ids(self) -> set[str]:
        """Return every run that anything here is of."""
        records = [*self.runs, *self.ranks, *self.injections, *self.places]
        named = {run_id for record in records if (run_id := getattr(record, "run_id", None))}
        return named | _run_ids(self.tables)


def _run_ids(tables: Iterable[pa.Table]) -> set[str]:
    columns = (table["run_id"] for table in tables if "run_id" in table.column_names)
    return {run_id for column in columns for run_id in pc.unique(column).to_pylist() if run_id is not None}


def load_spool(store: Store, directory: Path, *, again: bool = False) -> Loaded:
    """Store every segment of a spool and remove it; segments of dead writers are recovered first.

    A run whose writer died without saying how it ended becomes `lost`. A segment of which not everything can be
    read is kept as `.rejected`, and reported. Others who store the same spool wait. Where the file system keeps no
    locks, nothing is recovered, which is reported as well. With `again`, segments are stored of which it is not
    remembered any more whether they were, and those also that were kept as `.rejected` without being stored.
    Raises: UnavailableError when folder or store do not answer.
    """
    if not directory.is_dir():
        raise UnavailableError(f"spool {directory}: no such folder")
    loaded = Loaded()
    try:
        with _alone_in(directory) as problem:
            if problem is None:
                recover(directory, is_abandoned_in(directory, node_name()))
            else:
                loaded.problems.append(problem)
            if again:
                _bring_back(store, directory)
            for path in sealed_segments(directory):
                _move_in(store, path, loaded, again=again)
    except (OSError, *NO_ANSWER) as error:
        raise UnavailableError(f"from spool {directory} into store {store.home}: {error!s:.300}") from error
    return loaded


@contextmanager
def _alone_in(directory: Path) -> Iterator[str | None]:
    """Hold the folder's lock; yield why there is none, where the file system keeps none."""
    with lock_file(directory / "ingest.lock") as fd:
        yield _locked(fd, directory)


def _locked(fd: int, directory: Path) -> str | None:
    try:
        take_lock(fd, math.inf)
    except NoLocksError as error:
        return without_locks(directory, error)
    return None


def without_locks(directory: Path, error: NoLocksError) -> str:
    """Return a message for a spool on a file system without locks: the consequence, and a remedy."""
    return (
        f"spool {directory}: {error.strerror}: only sealed segments are stored, what dead writers left open "
        "stays there; mount it with locks, or ship from each node (crosswind sync --to)"
    )


def _bring_back(store: Store, directory: Path) -> None:
    """Let segments be stored that were kept aside, if nothing of them was."""
    for path in sorted(directory.glob("*.rejected")):
        segment = path.with_suffix(".segment")
        with suppress(ProjectError):  # what is no segment stays
            identity = batch_id(Unpacked(segment.name, path.read_bytes()))
            with store.catalog.read() as session:
                if not session.has_batch(identity):
                    path.rename(segment)


def _move_in(store: Store, path: Path, loaded: Loaded, *, again: bool) -> None:
    try:
        is_understood = load_segment(store, path, loaded, quarantine=path.with_suffix(".rejected"), again=again)
    except UnavailableError as error:
        if path.is_symlink() or path.exists():  # else a writer deleted it, for lack of space
            loaded.problems.append(str(error))
        return
    except (MalformedError, InvalidInputError) as error:
        loaded.problems.append(str(error))
        is_understood = False
    try:
        if is_understood:
            path.unlink(missing_ok=True)
        else:
            path.rename(path.with_suffix(".rejected"))
    except OSError as error:
        where = "removed" if is_understood else "kept aside"
        loaded.problems.append(f"{path} was stored as far as it is understood, and cannot be {where}: {error.strerror}")


def _check_remembered(store: Store, segment: Readable, identity: str) -> None:
    """Check of a batch that is not stored that this is remembered. Raises: ForgottenError, UnavailableError."""
    made_ns = made_in(segment.name)
    if made_ns is None or is_young(segment.name, store.catalog.clock()):
        return
    with store.catalog.read() as session:
        if not session.batches.is_forgotten(identity, made_ns):
            return
        until = _minute(session.batches.forgotten_ns() or 0)
    raise ForgottenError(
        f"{segment.name} was made at {_minute(made_ns)} and may have been stored before: what was made up to {until} "
        "is not remembered any more; `crosswind ingest --again FOLDER` stores the segments of a folder all the same"
    )


def _minute(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // 1_000_000_000, UTC):%Y-%m-%dT%H:%MZ}"


@dataclass(frozen=True)
class Sent:
    """A segment that came over the network: what its sender calls it, and the time here."""

    identity: str
    came_ns: int


def load_segment(  # noqa: PLR0913 - as `load_spool` and `receive` have it
    store: Store,
    path: Readable,
    loaded: Loaded,
    *,
    quarantine: Path | None = None,
    sent: Sent | None = None,
    again: bool = False,
) -> bool:
    """Store one sealed segment. Return whether all of it was understood; one stored before changes nothing.

    A segment of which not everything was understood is copied to `quarantine` before it counts as stored. Of one
    that was `sent` the extent is checked. With `again` it is stored also if that is not remembered any more.
    Raises: MalformedError, InvalidInputError, ForgottenError, UnavailableError.
    """
    identity = sent.identity if sent else batch_id(path)
    with store.catalog.read() as session:
        if session.has_batch(identity):
            loaded.duplicates += 1
            return True
    if not again:  # after that look: a batch that is forgotten in between is refused, and not stored twice
        _check_remembered(store, path, identity)
    reader, lake = SegmentReader(path, parse_quickly), store.whole.lake
    with lake.turn:
        content = _bound(store, _content(lake, reader, path, sent))
        parts = {f"{identity[:32]}-{number}": table for number, table in enumerate(content.tables)}
        staged = lake.stage(parts)
    if reader.report.reason:
        content.problems.append(f"{path.name}: read up to frame {reader.report.frames}: {reader.report.reason}")
    content.files = lake.publish(staged).files
    is_understood = not content.refused_frames and reader.report.reason is None
    if quarantine is not None and not is_understood:
        keep_copy(path, quarantine)
    is_new = _note(store, identity, path.name, content)
    loaded.problems += content.problems
    loaded.batches += is_new
    loaded.duplicates += not is_new
    loaded.rows += content.row_count() if is_new else 0
    loaded.runs |= {run.run_id for run in content.runs}
    return is_understood


def _note(store: Store, identity: str, origin: str, content: _Content) -> bool:
    """Return whether the catalog took the batch: not if somebody else stored it at the same moment."""
    try:
        with store.catalog.write() as session:
            if session.has_batch(identity):
                return False
            landings = landings_of(content.tables)
            session.lake_files.add(content.files)
            noted = NewBatch(identity, origin, content.row_count(), content.refused_frames, made_in(origin))
            session.add_batches([noted], landings)
            _merge(session, content)
    except IntegrityError:
        with store.catalog.read() as session:
            if not session.has_batch(identity):
                raise
        return False
    return True


def _bound(store: Store, content: _Content) -> _Content:
    """Return what a segment holds as its sender's, whom the store is for. Raises: ForbiddenError."""
    with store.catalog.read() as session:
        check_nodes(session, store.rule, content.tables, content.places)
    if store.rule.changes_all:
        return content
    if foreign := [name for table in content.tables if (name := set_of(table.schema).name) == JOB.name]:
        raise ForbiddenError(f"set {foreign[0]}: accounts of jobs are what the scheduler's reader stores")
    runs = own_runs(store.rule, content.runs)
    check_places(store.rule, content.places)
    with store.catalog.read() as session:
        check_run_ids(session, content.run_ids())
    return replace(content, runs=runs)


def _content(lake: Lake, frames: Iterable[Frame | SweepRows], path: Readable, sent: Sent | None) -> _Content:
    content, reasons = _Content(BatchBuilder(lake.check)), []
    for frame in frames:
        try:
            _take(lake, frame, content)
        except ProjectError as error:
            reasons.append(str(error))
    content.tables = content.builder.tables() + content.traced
    reasons += content.builder.refused
    if sent is not None:
        content.tables, unbelievable = believed(content.tables, sent.came_ns)
        reasons += unbelievable
        check_extent(content.tables)
    content.refused_frames = len(reasons)
    content.problems += [f"{path.name}: {reason}" for reason in reasons[:QUOTED]]
    if len(reasons) > QUOTED:
        content.problems.append(f"{path.name}: {len(reasons) - QUOTED} more frames refused")
    return content


def _take(lake: Lake, frame: Frame | SweepRows, content: _Content) -> None:
    match frame:
        case RowsFrame() | SweepRows():
            content.builder.add(frame)
        case RecordFrame("trace", value):
            content.traced += tables_of(lake, value)
        case RecordFrame(record, value):
            _take_record(record, value, content)
        case _:
            pass  # a set is carried by its rows


def _take_record(record: str, value: Mapping[str, object], content: _Content) -> None:
    match record:
        case "run":
            content.runs.append(run_of(_named(value)))
        case "rank":
            content.ranks.append(rank_of(value))
        case "allocation" | "placement":
            content.places.append(PLACES[record](_named(value)))
        case "injection":
            content.injections.append(injection_of(_named(value)))
        case _ if record == RECOVERED:
            _note_death(value, content)
        case _:
            raise MalformedError(
                f"record {record!r:.80}: expected run, rank, allocation, placement, injection, trace or recovered"
            )


def _note_death(value: Mapping[str, object], content: _Content) -> None:
    content.writer_died = True
    if value.get("torn_bytes"):
        content.problems.append(f"{value['torn_bytes']!s:.20} torn bytes were cut off ({value.get('reason')!s:.200})")


def _named(value: Mapping[str, object]) -> dict[str, object]:
    """Return the record without its empty facts, so that they replace nothing."""
    return {name: item for name, item in value.items() if item is not None}


def _merge(session: Session, content: _Content) -> None:
    for run in content.runs:
        session.runs.merge(run)
    for rank in content.ranks:
        session.ranks.merge(rank)
    for place in in_one_order(content.places):
        session.places.merge(place)
    for injected in content.injections:
        session.injections.put(injected)
    for run_id in content.lost_runs():
        session.runs.lose(run_id)
