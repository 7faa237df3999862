"""Compaction: the many small parts of a set's hour become one, later those of a day, and nothing else changes.

One rename is the whole change: the new file's manifest, which is on the disk before it, names the parts that count no
more from then on (`parts`). Killed before, there is an unused manifest; killed after, parts that count no more, which
the next compaction removes. Parts are not removed while a reader that may have listed them still reads.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.data.lake.damage import passing_over
from crosswind.data.lake.lake import Lake, arrow_schema
from crosswind.data.lake.merged import stage_merged
from crosswind.data.lake.mounts import MOUNTS
from crosswind.data.lake.parquet import times_in
from crosswind.data.lake.parts import DAY_NS, Manifest, Span, compacted_span, digest_of_columns, held, is_last_rows
from crosswind.data.lake.removal import remove_drafts, remove_replaced
from crosswind.data.lake.steps_summary import summarise
from crosswind.data.lake.storage import Filed
from crosswind.data.schema.errors import ConflictError, MalformedError, UnavailableError
from crosswind.data.schema.lake_file import FRESH
from crosswind.data.schema.metric import Column, MetricSet

HOUR_NS = 3_600_000_000_000
LATE_NS = 900_000_000_000  # parts of an hour still come so long after it; of a day, eight times as long
CELLS_MAX = 8_000_000  # of a compacted file, which is made in memory: rows x columns
SEVERAL = 8  # files that are worth being made one, although more will come
MOSTLY = 0.8  # a file of this share of the rows is not written again for the sake of the others
SETTLE_SECONDS = 60.0
PATIENCE_SECONDS = 5.0  # once a compaction, for a moment at which nobody reads


@dataclass
class Compacted:
    """Counts and problems of one compaction."""

    files_before: int = 0
    files_after: int = 0
    rows: int = 0  # that were rewritten
    summaries: int = 0  # of runs, rewritten
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Part:
    """A part that counts, and what decides where it goes."""

    path: Path
    first_ns: int
    rows: int
    columns: str  # digest of their names
    is_compacted: bool  # and not just landed


def compact(
    lake: Lake,
    *,
    now_ns: int | None = None,
    settle_seconds: float = SETTLE_SECONDS,
    is_over: Callable[[], bool] = lambda: False,
    mounts: Path = MOUNTS,
) -> Compacted:
    """Makes few parts of many, in every set; parts younger than `settle_seconds` wait. `is_over` ends it early.

    What cannot be read is left alone, and reported.
    Raises: ConflictError when somebody else compacts this lake; UnavailableError when it cannot be written, or when
    a lock there need not hold on every node.
    """
    done, now = Compacted(), time.time_ns() if now_ns is None else now_ns
    if not lake.root.is_dir():
        return done
    if why := lake.storage.why_unsafe(mounts):
        raise UnavailableError(f"lake {lake.root} is not compacted on {why}")
    try:
        with lake.storage.changing() as is_ours:
            if not is_ours:
                raise ConflictError(f"lake {lake.root} is being compacted by another process")
            remove_drafts(lake.root)
            _compact(lake, _days(lake, now, done), settle_seconds=settle_seconds, is_over=is_over)
            lake.storage.sweep()
            if lake.storage.keeps_summaries and not is_over():
                problems: list[str] = []
                done.summaries = summarise(lake, problems)
                done.problems += [problem for problem in problems if problem not in done.problems]
    except OSError as error:
        raise UnavailableError(f"lake {lake.root} cannot be compacted: {error}") from error
    return done


def days_of(lake: Lake) -> int:
    """Return how many days of sets a compaction looks at, one after another."""
    return sum(len(lake.storage.dates_to_compact(name)) for name in lake.storage.sets())


@dataclass(frozen=True)
class _Day:
    """The files of a set with rows of one day."""

    lake: Lake
    folder: Path
    now_ns: int
    done: Compacted
    columns: Mapping[str, Column]  # of the set

    def compact(self, settle_seconds: float) -> list[Path]:
        """Merges what is due; the parts that are still there and count no more."""
        self.lake.storage.tidy_day(self.folder)
        day = self.lake.storage.day(self.folder)
        self.done.files_before += len(day.live)
        if _is_one_file(day.live) or any(is_last_rows(part.path.name) for part in day.live):
            self.done.files_after += len(day.live)
            return list(day.replaced)  # what came after a day was retired is rolled up by itself
        oldest_ns = time.time_ns() - int(settle_seconds * 1e9)
        settled = [part for part in day.live if compacted_span(part.path.name) or part.appeared_ns <= oldest_ns]
        read = list(self._read(settled))
        merged = [self._merge(due) for due in self._due(read)]
        if any(merged):
            day = self.lake.storage.day(self.folder)
        elif len(read) == len(day.live) and not day.replaced and self._is_over(read):
            self.lake.storage.rest(self.folder)
        self.done.files_after += len(day.live)
        return list(day.replaced)

    def _is_over(self, parts: Iterable[_Part]) -> bool:
        """Return whether time alone gives this day nothing more to merge."""
        periods = [self._period(part.first_ns) for part in parts]
        return all(end - begin == DAY_NS for begin, end in periods)

    def _read(self, parts: Sequence[Filed]) -> Iterator[_Part]:
        for part in parts:
            with passing_over(self.done.problems, part.path):
                yield _part(part, self.columns.keys())

    def _due(self, parts: Sequence[_Part]) -> Iterator[list[_Part]]:
        """The groups of parts that shall be one file each."""
        groups: dict[tuple[str, Span], list[_Part]] = defaultdict(list)
        for part in sorted(parts, key=lambda part: (part.first_ns, part.path.name)):
            groups[part.columns, self._period(part.first_ns)].append(part)
        for (_, period), group in groups.items():
            small = [part for part in group if part.rows < self._rows_max() // 2]
            yield from self._chunks(_worth_it(small, is_closed=self.now_ns > period[1] + LATE_NS))

    def _period(self, ts_ns: int) -> Span:
        """The day when it is long over, else the hour."""
        end_of_day = (ts_ns // DAY_NS + 1) * DAY_NS
        if self.now_ns > end_of_day + 8 * LATE_NS:
            return end_of_day - DAY_NS, end_of_day
        hour = ts_ns // HOUR_NS * HOUR_NS
        return hour, hour + HOUR_NS

    def _chunks(self, parts: Sequence[_Part]) -> Iterator[list[_Part]]:
        """The parts in their order, as many at once as fit into memory."""
        chunk: list[_Part] = []
        rows = 0
        for part in parts:
            if chunk and rows + part.rows > self._rows_max():
                yield chunk
                chunk, rows = [], 0
            chunk.append(part)
            rows += part.rows
        if chunk:
            yield chunk

    def _rows_max(self) -> int:
        return CELLS_MAX // len(self.columns)

    def _merge(self, parts: Sequence[_Part]) -> bool:
        """Writes the parts as one file, after which they count no more; whether there was anything to write."""
        read = list(self._tables(parts))
        if not any(len(read) > 1 or not part.is_compacted for part, _ in read):
            return False
        try:
            self._write([part for part, _ in read], pa.concat_tables([table for _, table in read]))
        except pa.ArrowException as error:  # such as more text than one column may hold
            self.done.problems.append(f"{self.folder}: {len(read)} parts are left as they are: {error!s:.200}")
            return False
        return True

    def _tables(self, parts: Sequence[_Part]) -> Iterator[tuple[_Part, pa.Table]]:
        for part in parts:
            with passing_over(self.done.problems, part.path):
                self.lake.storage.bring(part.path)
                table = pq.ParquetFile(part.path).read(use_threads=False)
                yield part, table.cast(arrow_schema(self._set_of(table.column_names)))

    def _set_of(self, names: Sequence[str]) -> MetricSet:
        """The set as far as a part has it: parts of a minute do not say themselves what their columns are."""
        _check_known(names, self.columns.keys())
        name = self.folder.parent.name.removeprefix("set=")
        return MetricSet(name, "", tuple(self.columns[column] for column in names))

    def _write(self, parts: Sequence[_Part], table: pa.Table) -> None:
        older = [Manifest.read(part.path).names for part in parts if compacted_span(part.path.name)]
        merged = stage_merged(self.folder, table, [part.path.name for part in parts], older)
        self.lake.storage.replace([part.path for part in parts], merged)
        self.done.rows += len(table)


def _days(lake: Lake, now_ns: int, done: Compacted) -> Iterator[_Day]:
    for name in lake.storage.sets():
        folder = lake.root / f"set={name}"
        with passing_over(done.problems, folder):
            columns = lake.columns(name)
            dates = lake.storage.dates_to_compact(name)
            yield from [_Day(lake, folder / f"date={date}", now_ns, done, columns) for date in dates]


def _compact(lake: Lake, pending: Iterable[_Day], *, settle_seconds: float, is_over: Callable[[], bool]) -> None:
    replaced: list[Path] = []
    for day in pending:
        if is_over():
            return
        with passing_over(day.done.problems, day.folder):
            replaced = remove_replaced(lake.root, [*replaced, *day.compact(settle_seconds)])
    remove_replaced(lake.root, replaced, PATIENCE_SECONDS)


def _is_one_file(live: Sequence[Filed]) -> bool:
    """Return whether a day has one file, which was compacted; what it was made of is not looked at."""
    is_compacted = len(live) == 1 and compacted_span(live[0].path.name) is not None
    return is_compacted and (live[0].noted is None or live[0].noted.kind not in FRESH)


def _part(filed: Filed, defined: Set[str]) -> _Part:
    path, noted = filed.path, filed.noted
    if noted is not None:
        return _Part(path, noted.first_ns, noted.rows, noted.columns, is_compacted=noted.kind not in FRESH)
    span = compacted_span(path.name)
    if span is not None:
        return _Part(path, span[0], held(path).rows, held(path).columns, is_compacted=not held(path).is_landing)
    file = pq.ParquetFile(path)
    _check_known(file.schema_arrow.names, defined)
    times = times_in(file)
    if times is None:
        raise MalformedError("it has no rows")
    return _Part(path, times[0], file.metadata.num_rows, digest_of_columns(file.schema_arrow.names), is_compacted=False)


def _check_known(names: Iterable[str], defined: Set[str]) -> None:
    if unknown := set(names) - defined:
        raise MalformedError(f"nothing defines its columns {', '.join(sorted(unknown))}")


def _worth_it(parts: Sequence[_Part], *, is_closed: bool) -> list[_Part]:
    """Those that should be merged now: new parts always, once there are some; what was compacted as seldom as helps."""
    fresh = [part for part in parts if not part.is_compacted]
    compacted = [part for part in parts if part.is_compacted]
    rows = sum(part.rows for part in parts)
    largest = max((part.rows for part in parts), default=0)
    if len(parts) > 1 and (len(compacted) >= SEVERAL or (is_closed and largest < MOSTLY * rows)):
        return list(parts)
    return fresh if len(fresh) > 1 or (fresh and is_closed) else []
