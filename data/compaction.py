"""Compaction: the many small parts of a set's hour become one, later those of a day, and nothing else changes.

One rename is the whole change: the new file's manifest, which is on the disk before it, names the parts that count no
more from then on (`parts`). Killed before, there is an unused manifest; killed after, parts that count no more, which
the next compaction removes. Parts are not removed while a reader that may have listed them still reads.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswind.data.errors import MalformedError, UnavailableError
from crosswind.data.lake import Lake, arrow_schema
from crosswind.data.locks import COMPACTING, READING, alone, make_lock
from crosswind.data.metric import Column, MetricSet
from crosswind.data.parquet import SORT_KEYS, write_parquet
from crosswind.data.parts import (
    DAY_NS,
    Manifest,
    Span,
    compacted_span,
    days,
    held,
    manifest_of,
    part_names,
    superseded_in,
)
from crosswind.data.publish import WRITING, hidden_name, land, sync
from crosswind.data.steps_summary import summarise

HOUR_NS = 3_600_000_000_000
LATE_NS = 900_000_000_000  # parts of an hour still come so long after it; of a day, eight times as long
CELLS_MAX = 16_000_000  # of a compacted file, which is made in memory: rows x columns
SEVERAL = 8  # files that are worth being made one, although more will come
MOSTLY = 0.8  # a file of this share of the rows is not written again for the sake of the others
SETTLE_SECONDS = 60.0
PATIENCE_SECONDS = 5.0


@dataclass
class Compacted:
    """What one compaction did."""

    files_before: int = 0
    files_after: int = 0
    rows: int = 0  # that were written anew
    summaries: int = 0  # of runs, written anew
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Part:
    """A part that counts, and what decides where it goes."""

    path: Path
    first_ns: int
    rows: int
    columns: str  # digest of their names
    is_compacted: bool


def compact(
    lake: Lake,
    *,
    now_ns: int | None = None,
    settle_seconds: float = SETTLE_SECONDS,
    is_over: Callable[[], bool] = lambda: False,
) -> Compacted:
    """Makes few parts of many, in every set; parts younger than `settle_seconds` wait. `is_over` ends it early.

    A part that cannot be read stays as it is, and is told.
    Raises: UnavailableError when somebody else compacts this lake, or it cannot be written or locked.
    """
    done, now = Compacted(), time.time_ns() if now_ns is None else now_ns
    if not lake.root.is_dir():
        return done
    try:
        make_lock(lake.root)
        with alone(lake.root / COMPACTING) as is_ours:
            if not is_ours:
                raise UnavailableError(f"lake {lake.root} is being compacted by another process")
            _clear_drafts(lake.root)
            for name in lake.sets():
                columns = lake.columns(name)
                for day in days(lake.root / f"set={name}"):
                    if not is_over():
                        _Day(lake, day, now, done, columns).compact(settle_seconds)
            if not is_over():
                done.summaries = summarise(lake)
    except OSError as error:
        raise UnavailableError(f"lake {lake.root} cannot be compacted: {error}") from error
    return done


def _clear_drafts(root: Path) -> None:
    """Removes what a killed compaction was writing; whoever compacts now is alone."""
    for draft in (root / WRITING).glob("*part-c*_*_*.*"):
        draft.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Day:
    """The files of a set with rows of one day."""

    lake: Lake
    folder: Path
    now_ns: int
    done: Compacted
    columns: Mapping[str, Column]  # of the set

    def compact(self, settle_seconds: float) -> None:
        """Merges what is due, and removes what counts no more."""
        before = self._remove_superseded()
        oldest_ns = time.time_ns() - int(settle_seconds * 1e9)
        settled = [path for path in before if compacted_span(path.name) or path.stat().st_mtime_ns <= oldest_ns]
        merged = [self._merge(due) for due in self._due(list(self._read(settled)))]
        self.done.files_before += len(before)
        self.done.files_after += len(self._remove_superseded()) if any(merged) else len(before)

    def _remove_superseded(self) -> list[Path]:
        """The files that count. The others go once nobody reads who may have listed them: later readers pass over them.

        Manifests of files that are gone go as well.
        """
        names = part_names(self.folder)
        superseded = superseded_in(self.folder, names)
        if superseded and self._have_readers_left():
            for name in superseded:
                (self.folder / name).unlink(missing_ok=True)
            sync(self.folder)
        for manifest in self.folder.glob("_held-*.json"):
            if not (self.folder / f"{manifest.stem.removeprefix('_held-')}.parquet").exists():
                manifest.unlink(missing_ok=True)
        return [self.folder / name for name in names if name not in superseded]

    def _have_readers_left(self) -> bool:
        with alone(self.lake.root / READING, PATIENCE_SECONDS) as nobody_reads:
            return nobody_reads

    def _read(self, paths: Sequence[Path]) -> Iterator[_Part]:
        for path in paths:
            try:
                yield _part(path, self.columns.keys())
            except (MalformedError, pa.ArrowException, OSError) as error:
                self.done.problems.append(f"{path}: left as it is: {error!s:.200}")

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
        metric_set = self._set_of(parts[0].path)
        read = [(part, table) for part in parts if (table := self._table(part, metric_set)) is not None]
        if not any(len(read) > 1 or not part.is_compacted for part, _ in read):
            return False
        try:
            self._write([part for part, _ in read], pa.concat_tables([table for _, table in read]), metric_set)
        except pa.ArrowException as error:  # such as more text than one column may hold
            self.done.problems.append(f"{self.folder}: {len(read)} parts are left as they are: {error!s:.200}")
            return False
        return True

    def _write(self, parts: Sequence[_Part], table: pa.Table, metric_set: MetricSet) -> None:
        keys = [(key, "ascending") for key in SORT_KEYS if key in set(table.column_names)]
        merged = table.sort_by(keys)
        manifest = _manifest(parts, merged)
        first, last = pc.min_max(merged["ts_ns"]).as_py().values()
        self._publish(self.folder / f"part-c{first}_{last}_{manifest.digest}.parquet", merged, metric_set, manifest)
        self.done.rows += len(merged)

    def _set_of(self, path: Path) -> MetricSet:
        """The set as far as the part has it: parts of a minute do not say themselves what their columns are."""
        name = self.folder.parent.name.removeprefix("set=")
        return MetricSet(name, "", tuple(self.columns[column] for column in pq.read_schema(path).names))

    def _table(self, part: _Part, metric_set: MetricSet) -> pa.Table | None:
        try:
            return pq.ParquetFile(part.path).read(use_threads=False).cast(arrow_schema(metric_set))
        except (pa.ArrowException, ValueError, OSError) as error:
            self.done.problems.append(f"{part.path}: left as it is: {error!s:.200}")
            return None

    def _publish(self, path: Path, table: pa.Table, metric_set: MetricSet, manifest: Manifest) -> None:
        hidden, told = hidden_name(self.lake.root, path), hidden_name(self.lake.root, manifest_of(path))
        write_parquet(table, hidden, metric_set)
        told.write_text(manifest.as_text())
        for draft, place in ((told, manifest_of(path)), (hidden, path)):  # the manifest first, and on the disk
            for folder in land(draft, place):
                sync(folder)


def _part(path: Path, known: Set[str]) -> _Part:
    span = compacted_span(path.name)
    if span is not None:
        return _Part(path, span[0], held(path).rows, held(path).columns, is_compacted=True)
    file = pq.ParquetFile(path)
    if unknown := set(file.schema_arrow.names) - known:
        raise MalformedError(f"nothing defines its columns {', '.join(sorted(unknown))}")
    first = pc.min(file.read(["ts_ns"], use_threads=False)["ts_ns"]).as_py()
    if first is None:
        raise MalformedError("it has no rows")
    digest = hashlib.sha256("\n".join(file.schema_arrow.names).encode()).hexdigest()[:16]
    return _Part(path, first, file.metadata.num_rows, digest, is_compacted=False)


def _worth_it(parts: Sequence[_Part], *, is_closed: bool) -> list[_Part]:
    """Those that should be merged now: new parts always, once there are some; what was compacted as seldom as helps."""
    fresh = [part for part in parts if not part.is_compacted]
    compacted = [part for part in parts if part.is_compacted]
    rows = sum(part.rows for part in parts)
    largest = max((part.rows for part in parts), default=0)
    if len(parts) > 1 and (len(compacted) >= SEVERAL or (is_closed and largest < MOSTLY * rows)):
        return list(parts)
    return fresh if len(fresh) > 1 or (fresh and is_closed) else []


def _manifest(parts: Sequence[_Part], merged: pa.Table) -> Manifest:
    made_of = tuple(part.path.name for part in parts)
    older = (Manifest.read(part.path).names for part in parts if part.is_compacted)
    runs = frozenset(pc.unique(merged["run_id"]).to_pylist()) if "run_id" in merged.column_names else None
    if runs is not None and None in runs:
        runs = None
    return Manifest(made_of, frozenset(made_of).union(*older), len(merged), parts[0].columns, runs)
