"""The door to traces: files and folders in, ranks out; each file by the reader that recognises its content.

Files are read in processes of their own, at most `workers` at once, so that memory does not grow with the ranks as long
as the caller keeps none. What was read once comes from the cache.
"""

import multiprocessing
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.traces.cache import TraceCache, key_of
from crosswind.data.traces.perfetto import MERGED
from crosswind.data.traces.trace import RankTrace
from crosswind.ingest.reader.lines import head_of, refuse_pipe
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import plain_bytes
from crosswind.ingest.readers.traces import TRACE_READERS
from crosswind.ingest.readers.traces.one_run import OneRun
from crosswind.ingest.readers.traces.reader import TraceReader, beside

HEAD_OF_MERGED = 200  # bytes in which a file of several ranks says that it is one


@dataclass(frozen=True)
class TraceFile:
    """A file, and the reader that recognises it."""

    path: Path
    reader: TraceReader

    def key(self) -> str:
        """Return what tells its content from others, for the cache. Raises: OSError."""
        others = [beside(self.path, ending) for ending in self.reader.companions]
        files = [self.path, *(path for path in others if path.is_file())]
        return key_of(files, f"{self.reader.name} {self.reader.version}")

    def read(self, cache: TraceCache | None) -> list[RankTrace]:
        """Return its traces, from the cache where they are in it. Raises: MalformedError, UnavailableError."""
        try:
            key = self.key()
            if cache and (kept := cache.get(key)) is not None:
                return [replace(trace, source=str(self.path)) for trace in kept]
            report = Report(str(self.path), self.reader.name)
            traces = [with_report(trace, report) for trace in self.reader.read(self.path, report)]
            if self.key() != key:
                note = f"{self.path.name} changed while it was read: its end may be missing"
                return [replace(trace, notes=(*trace.notes, note)) for trace in traces]
            if cache:
                with suppress(OSError):  # a full disk, or a folder of another user: it is read again next time
                    cache.put(key, traces)
        except OSError as error:
            raise UnavailableError(f"{error.filename or self.path}: {error.strerror or error}") from error
        return traces


def read_traces(paths: Iterable[Path], *, workers: int = 1, cache: TraceCache | None = None) -> list[RankTrace]:
    """Return the traces of a run's ranks, by rank. Raises: as `stream_traces`."""
    traces = list(stream_traces(paths, workers=workers, cache=cache))
    return sorted(traces, key=lambda trace: -1 if trace.rank is None else trace.rank)


def stream_traces(paths: Iterable[Path], *, workers: int = 1, cache: TraceCache | None = None) -> Iterator[RankTrace]:
    """Yield the traces of a run's ranks, in the order of the files' names.

    Raises: MalformedError, UnavailableError; InvalidInputError when files are of no format, or not of one run.
    """
    files = trace_files(paths)
    yield from OneRun().of(_read_all(files, min(workers, len(files)), cache))


def trace_files(paths: Iterable[Path]) -> list[TraceFile]:
    """Return the files, and those in folders that some reader recognises, by name with its numbers in their order.

    Raises: UnavailableError, InvalidInputError.
    """
    files: dict[Path, TraceFile] = {}
    for path in paths:
        for file in _in_folder(path) if path.is_dir() else [_recognised(path)]:
            files.setdefault(file.path.resolve(), file)
    if not files:
        raise InvalidInputError("no trace files are given; expected at least one")
    return sorted(files.values(), key=lambda file: _natural(str(file.path)))


def with_report(trace: RankTrace, report: Report) -> RankTrace:
    """Return the trace with notes of what its reader did not understand."""
    notes = [*trace.notes, *report.notes]
    if report.damage:
        notes.append(report.damage)
    if report.skipped > bool(report.damage):
        first = next(one for one in report.quoted if one.text or one.reason != report.damage)
        notes.append(f"{report.skipped - bool(report.damage)} entries were not understood, the first: {first.reason}")
    return replace(trace, notes=tuple(notes))


def _in_folder(folder: Path) -> list[TraceFile]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    read = ((path, _reader_of(path)) for path in paths)
    files = [TraceFile(path, reader) for path, reader in read if reader is not None and not _is_merged(path)]
    if not files:
        raise InvalidInputError(f"{folder}: {len(paths)} files, none of them a trace; expected {_formats()}")
    return files


def _recognised(path: Path) -> TraceFile:
    refuse_pipe(path)
    reader = _reader_of(path)
    if reader is None:
        raise InvalidInputError(f"{path}: no trace by its content; expected {_formats()}")
    if _is_merged(path):
        raise InvalidInputError(f"{path}: ranks that `crosswind trace merge` wrote together; expected a file of each")
    return TraceFile(path, reader)


def _is_merged(path: Path) -> bool:
    return f'"{MERGED}"'.encode() in plain_bytes(head_of(path))[:HEAD_OF_MERGED]


def _reader_of(path: Path) -> TraceReader | None:
    head = head_of(path)
    return next((reader for reader in TRACE_READERS if reader.recognises(path, head)), None)


def _formats() -> str:
    return "; or ".join(reader.description for reader in TRACE_READERS)


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]


def _read_all(files: Sequence[TraceFile], workers: int, cache: TraceCache | None) -> Iterator[RankTrace]:
    if workers <= 1:
        for file in files:
            yield from file.read(cache)
        return
    context = multiprocessing.get_context("spawn")  # a copy of this process may hold locks of its threads
    with ProcessPoolExecutor(workers, context) as pool:
        waiting: deque[tuple[TraceFile, Future[list[RankTrace]]]] = deque()
        left = iter(files)
        try:
            while True:
                free = range(workers - len(waiting))
                waiting.extend((file, pool.submit(file.read, cache)) for _, file in zip(free, left, strict=False))
                if not waiting:
                    return
                yield from _result(*waiting.popleft())
        finally:
            for _, future in waiting:
                future.cancel()


def _result(file: TraceFile, future: Future[list[RankTrace]]) -> list[RankTrace]:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise UnavailableError(f"{file.path}: the process that read it, or one next to it, was killed") from error
