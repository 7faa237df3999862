"""The spool: a directory on node-local disk that keeps samples and records until they are shipped.

A writer holds one `<time>-<random>.<origin>.open` file under flock; sealing renames it to `.segment`. An `.open`
file whose lock is free is a dead writer's, and may be recovered by anybody.
"""

import hashlib
import math
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from crosswind.data.files import PRIVATE_FILE, make_private, sync
from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.metric import MetricSet, Scalar, is_name
from crosswind.ingest.spool.encoder import SweepEncoder
from crosswind.ingest.spool.file_lock import locked, locked_or_removed
from crosswind.ingest.spool.segment import (
    Frame,
    RecordFrame,
    RowsFrame,
    SetFrame,
    SweepRows,
    check_columns,
    encode_frame,
)
from crosswind.ingest.spool.segment_reader import (
    Readable,
    SegmentReader,
    SegmentReport,
    opened,
    read_frames,
    read_segment,
)

__all__ = [
    "Frame",
    "RecordFrame",
    "RowsFrame",
    "SegmentReader",
    "SegmentReport",
    "SetFrame",
    "SpoolWriter",
    "SweepRows",
    "batch_id",
    "read_frames",
    "read_segment",
    "recover",
    "sealed_segments",
]

ORIGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
RECOVERED = "recovered"  # record at the end of a segment whose writer died
SEGMENT_BYTES = 4 * 1024 * 1024
DIRECTORY_BYTES = 1024 * 1024 * 1024


class SpoolWriter:
    """Appends rows and records to a spool directory; whatever `append_*` accepted survives the death of the process.

    `flush` also makes it survive the death of the node. Threads may share a writer; a forked child needs its own.
    The oldest sealed segments are deleted, and counted, when the directory would outgrow `directory_bytes`.
    """

    def __init__(
        self,
        directory: Path,
        origin: str,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        segment_seconds: float = math.inf,
        directory_bytes: int = DIRECTORY_BYTES,
    ) -> None:
        if not ORIGIN.fullmatch(origin):
            raise InvalidInputError(f"origin {origin!r:.120}: expected at most 100 letters, digits, dots, dashes or _")
        self.directory = directory
        self.origin = origin
        self.dropped_segments = 0
        self._segment_bytes = segment_bytes
        self._segment_seconds = segment_seconds
        self._directory_bytes = directory_bytes
        self._lock = threading.Lock()
        self._encoder = SweepEncoder()
        self._pid = os.getpid()
        self._active: _OpenSegment | None = None
        with _unavailable(f"spool {directory}"):
            make_private(directory)

    def append_rows(self, metric_set: MetricSet, columns: Mapping[str, Sequence[Scalar]]) -> None:
        """Append rows of a set, by column: equally long, of the set's types, None for missing.

        Raises: InvalidInputError for other columns; UnavailableError when the disk is full, nothing being half written.
        """
        lists = {name: list(values) for name, values in columns.items()}
        with _invalid(self.origin):
            check_columns(metric_set, lists)
            frame = encode_frame({"kind": "rows", "set": metric_set.name, "columns": lists})
        with self._writing(len(frame)) as segment:
            segment.write([(metric_set, frame)])

    def append_sweep(
        self, sweep: Sequence[SweepRows], follow_up: Callable[[list[str | None]], Iterable[SweepRows]] = lambda _: ()
    ) -> None:
        """Append the rows of one sweep for several sets, in one write.

        `follow_up` receives for every set why it was left out, or None, and returns further sets to append.
        Raises: UnavailableError when the disk is full, nothing being half written.
        """
        frames: list[tuple[MetricSet, bytes]] = []
        reasons = [self._encoded_into(frames, rows) for rows in sweep]
        for rows in follow_up(reasons):
            self._encoded_into(frames, rows)
        with self._writing(sum(len(frame) for _, frame in frames)) as segment:
            segment.write(frames)

    def append_record(self, record: str, value: Mapping[str, object]) -> None:
        """Append a partial record for the catalog, such as `run` or `rank`, to be merged by its key.

        Raises: InvalidInputError for other names and for what JSON cannot say; UnavailableError when the disk is full.
        """
        if not is_name(record):
            raise InvalidInputError(f"record {record!r:.80}: expected lower-case letters, digits and underscores")
        with _invalid(self.origin):
            frame = encode_frame({"kind": "record", "record": record, "value": dict(value)})
        with self._writing(len(frame)) as segment:
            segment.write([(None, frame)])

    def flush(self) -> None:
        """Force everything appended to the disk itself, so that a power failure loses none of it.

        Raises: UnavailableError when the disk refuses.
        """
        self._refuse_child()
        with self._lock, _unavailable(f"spool {self.directory}"):
            if self._active:
                os.fdatasync(self._active.fd)

    def seal(self) -> Path | None:
        """Seal the active segment, ready to be shipped, and return it; None when nothing was appended to it.

        Raises: UnavailableError when the disk refuses; the file is then left for `recover`.
        """
        self._refuse_child()
        with self._lock:
            return self._seal()

    def waiting_bytes(self) -> int:
        """Return the size of the sealed segments."""
        return sum(_size(path) or 0 for path in sealed_segments(self.directory))

    def close(self) -> None:
        """Seal the active segment; in a forked child only close it."""
        if os.getpid() == self._pid:
            self.seal()
        elif self._active:
            os.close(self._active.fd)
            self._active = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _encoded_into(self, frames: list[tuple[MetricSet, bytes]], rows: SweepRows) -> str | None:
        """Add the set's frame, or return why that is impossible."""
        try:
            frames.append((rows.metric_set, self._encoder.frame(rows)))
        except MalformedError as error:
            return str(error)
        return None

    @contextmanager
    def _writing(self, frame_bytes: int) -> Iterator["_OpenSegment"]:
        self._refuse_child()
        with self._lock, _unavailable(f"spool {self.directory}"):
            if self._active and self._is_full(self._active, frame_bytes):
                self._seal()
            if self._active is None:
                self._active = _OpenSegment.create(self.directory, self.origin)
            try:
                yield self._active
            except OSError:
                self._drop_if_broken()
                raise

    def _is_full(self, segment: "_OpenSegment", frame_bytes: int) -> bool:
        too_old = time.monotonic() - segment.opened >= self._segment_seconds
        return segment.size > 0 and (too_old or segment.size + frame_bytes > self._segment_bytes)

    def _seal(self) -> Path | None:
        segment, self._active = self._active, None
        if segment is None:
            return None
        with _unavailable(f"spool {self.directory}"):
            sealed = _seal(segment.fd, segment.path, is_empty=segment.size == 0)
            self._keep_within_limit()
        return sealed

    def _drop_if_broken(self) -> None:
        if self._active and self._active.is_broken:
            os.close(self._active.fd)
            self._active = None

    def _keep_within_limit(self) -> None:
        sizes = {path: size for path in sealed_segments(self.directory) if (size := _size(path)) is not None}
        excess = sum(sizes.values()) - self._directory_bytes
        for path, size in sizes.items():
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            self.dropped_segments += 1
            excess -= size

    def _refuse_child(self) -> None:
        if os.getpid() != self._pid:
            raise InvalidInputError(f"spool writer {self.origin} was opened before a fork; open one in the child")


class _OpenSegment:
    """The file that a writer appends to, under its lock."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.size = 0
        self.opened = time.monotonic()
        self.sets: dict[str, MetricSet] = {}
        self.is_broken = False

    @classmethod
    def create(cls, directory: Path, origin: str) -> Self:
        while True:
            path = directory / f"{time.time_ns():020d}-{secrets.token_hex(4)}.{origin}.open"
            try:
                fd = _created(path)
            except FileNotFoundError:  # somebody removed the folder
                make_private(directory)
                fd = _created(path)
            # Between creation and lock a recovery may take the file for a dead writer's and remove it: then once more.
            if locked_or_removed(fd, path):
                return cls(path, fd)

    def write(self, frames: Collection[tuple[MetricSet | None, bytes]]) -> None:
        """Write frames, after the sets that they need, or leave the file as it was. Raises: OSError."""
        news = {
            metric_set.name: metric_set
            for metric_set, _ in frames
            if metric_set is not None and self.sets.get(metric_set.name) is not metric_set
        }
        news = {name: metric_set for name, metric_set in news.items() if self.sets.get(name) != metric_set}
        definitions = [encode_frame({"kind": "set", "set": metric_set.as_json()}) for metric_set in news.values()]
        content = b"".join([*definitions, *(frame for _, frame in frames)])
        try:
            written = 0
            while written < len(content):
                written += os.write(self.fd, content[written:] if written else content)
        except OSError:
            self._take_back()
            raise
        self.size += len(content)
        self.sets |= news

    def _take_back(self) -> None:
        try:
            os.ftruncate(self.fd, self.size)
        except OSError:
            self.is_broken = True


def sealed_segments(directory: Path) -> list[Path]:
    """Return the sealed segments of a spool directory, oldest first."""
    return sorted(directory.glob("*.segment"))


def recover(directory: Path, is_abandoned: Callable[[Path], bool] = lambda _: True) -> list[SegmentReport]:
    """Seal what dead writers left behind, cut to the last whole frame. Return a report on each file.

    Files of living writers are left alone, and files without a whole frame are removed. Where a lock may not be seen,
    `is_abandoned` says which files to try at all. Raises: UnavailableError when the disk refuses.
    """
    reports = (_recover_one(path) for path in sorted(directory.glob("*.open")) if is_abandoned(path))
    return [report for report in reports if report is not None]


def batch_id(path: Readable) -> str:
    """Return the id of this segment's content and origin, wherever it is copied to: 64 hexadecimal digits.

    Raises: InvalidInputError for another file name; UnavailableError when it cannot be read, as NotPlainError when it
    is no file.
    """
    _, _, origin = path.name.removesuffix(".segment").partition(".")
    if not path.name.endswith(".segment") or not ORIGIN.fullmatch(origin):
        raise InvalidInputError(f"{path}: expected a file named <time>.<origin>.segment")
    digest = hashlib.sha256(origin.encode() + b"\0")
    with _unavailable(f"segment {path}"), opened(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _recover_one(path: Path) -> SegmentReport | None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # sealed meanwhile, another user's, or a link: not ours to recover
        return None
    try:
        with _unavailable(f"spool file {path}"):
            is_ours = stat.S_ISREG(os.fstat(fd).st_mode) and locked(fd, path)
        reader = read_segment(path)
        for _ in reader if is_ours else ():
            pass
    except BaseException:
        os.close(fd)
        raise
    if not is_ours:
        os.close(fd)
        return None
    with _unavailable(f"spool file {path}"):
        os.ftruncate(fd, reader.whole_bytes)
        if reader.whole_bytes:
            _say_recovered(fd, reader)
        sealed = _seal(fd, path, is_empty=reader.whole_bytes == 0)
    return replace(reader.report, path=sealed or path)


def _say_recovered(fd: int, reader: SegmentReader[Frame]) -> None:
    """End the segment with a record of its writer's death, for the store; on a full disk there is none."""
    value = {"torn_bytes": reader.report.torn_bytes, "reason": reader.report.reason}
    try:
        os.lseek(fd, 0, os.SEEK_END)
        os.write(fd, encode_frame({"kind": "record", "record": RECOVERED, "value": value}))
    except OSError:
        os.ftruncate(fd, reader.whole_bytes)


def _created(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE_FILE)


def _seal(fd: int, path: Path, *, is_empty: bool) -> Path | None:
    sealed = path.with_suffix(".segment")
    try:
        if is_empty:
            path.unlink()
            return None
        os.fsync(fd)
        path.rename(sealed)
    finally:
        os.close(fd)
    sync(path.parent)
    return sealed


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # shipped meanwhile
        return None


@contextmanager
def _unavailable(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(f"{what}: {error.strerror or error}") from error


@contextmanager
def _invalid(what: str) -> Iterator[None]:
    try:
        yield
    except MalformedError as error:
        raise InvalidInputError(f"{what}: {error}") from error
