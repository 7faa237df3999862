"""Loading traces into the store as those of a run, exactly once, as other files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from crosswind.data.lake.lake import Lake
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.paths import TRACE_CACHE_BYTES
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.data.traces.cache import TraceCache
from crosswind.data.traces.rows import rows_of
from crosswind.ingest.load.captured import was_captured
from crosswind.ingest.load.digests import digests_of
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import load_file
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.readers.traces.files import TraceFile, stream_traces, trace_files
from crosswind.ingest.readers.traces.reader import beside

CACHE = "traces"  # below the store's folder; may be deleted at any time
TRACED = "traced"  # the workload of a run of which nothing else is known


@dataclass(frozen=True)
class TracesOfRun:
    """A reader whose file is a trace of a run that the caller names, or of several of its ranks."""

    file: TraceFile
    run: Run
    is_new: bool  # the run: nothing else of it is stored
    ranks: Sequence[int]  # of the file's traces
    notes: Sequence[tuple[str, ...]]  # on these, among the others of the run
    cache: TraceCache
    lake: Lake
    name: ClassVar[str] = "trace"
    description: ClassVar[str] = "a trace of a run that is named"

    @property
    def mapping(self) -> str:
        """The run, the ranks, and the files next to it, as text: other ones make another reading of the same file."""
        others = (beside(self.file.path, ending) for ending in self.file.reader.companions)
        digests = [digests_of(path, ()).whole for path in others if path.exists()]
        return json.dumps([self.file.reader.name, self.run.run_id, digests, *self.ranks])

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether it is the file."""
        return self.file.reader.recognises(path, head)

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:  # noqa: ARG002
        """Yield the rows of each rank, and the run if it is new. Raises: MalformedError, UnavailableError."""
        if self.is_new:
            yield self.run
        for rank, notes, read in zip(self.ranks, self.notes, self.file.read(self.cache), strict=True):
            trace = replace(read, notes=notes)
            report.read += len(trace.events)
            report.notes += trace.notes
            if not self.is_new and was_captured(self.lake, self.run, replace(trace, rank=rank)):
                report.notes.append(f"rank {rank}: the run has sent this trace itself")
            else:
                yield from rows_of(trace, self.run, rank)


def load_traces(  # noqa: PLR0913 - as for other files, and what is kept of them
    store: Store,
    paths: Sequence[Path],
    run_id: str,
    loaded: Loaded,
    *,
    context: Context,
    cache_bytes: int = TRACE_CACHE_BYTES,
) -> None:
    """Store traces of the ranks of a run; a run that is not stored yet is made, and those of others are refused.

    What was read is kept in the store's folder, so many bytes at most.
    Raises: MalformedError, UnavailableError, InvalidInputError when the files are not of one run; ForbiddenError.
    """
    cache = TraceCache(store.home / CACHE, cache_bytes)
    run, is_new = _run(store, run_id, context)
    traces = _ranks(paths, cache)
    for file in trace_files(paths):
        ranks, notes = zip(*traces[str(file.path)], strict=True)
        reader = TracesOfRun(file, run, is_new, ranks, notes, cache, store.whole.lake)
        load_file(store, file.path, reader, loaded, context=context)
    loaded.runs.add(run_id)


def _run(store: Store, run_id: str, context: Context) -> tuple[Run, bool]:
    try:
        with store.catalog.read() as session:
            return session.runs.get(run_id), False
    except NotFoundError:
        run = Run(run_id, context.workload or TRACED, context.system, RunState.COMPLETED, facts=context.facts)
        return run, True


def _ranks(paths: Sequence[Path], cache: TraceCache) -> Mapping[str, list[tuple[int, tuple[str, ...]]]]:
    """Return the ranks in each file, by its name, with notes: all are read once, and come from the cache afterwards."""
    ranks: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    for trace in stream_traces(paths, cache=cache):
        ranks.setdefault(trace.source, []).append((0 if trace.rank is None else trace.rank, trace.notes))
    return ranks
