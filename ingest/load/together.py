"""Batches that agents sent at the same moment, stored together: a file for each set, not for each set and agent.

That holds for whole batches of samples alone. Any other, and all of them where anything goes wrong, are left to
`receive`, which stores one by itself and can say why it cannot.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from sqlalchemy.exc import SQLAlchemyError

from crosswind.data.catalog.catalog import NewBatch
from crosswind.data.lake.lake import Lake, set_of
from crosswind.data.lake.landings import together
from crosswind.data.lake.merged import stage_together
from crosswind.data.lake.mounts import MOUNTS
from crosswind.data.lake.parts import DAY_NS
from crosswind.data.lake.storage import Storage
from crosswind.data.schema.batch import is_young, made_in
from crosswind.data.schema.errors import MalformedError, ProjectError
from crosswind.data.schema.landing import Landing
from crosswind.data.schema.metric import MetricSet
from crosswind.data.store.store import Store
from crosswind.ingest.load.batch_builder import BatchBuilder, parse_quickly
from crosswind.ingest.load.extent import AHEAD_NS, SETS_MAX
from crosswind.ingest.load.receive import Fate, Received
from crosswind.ingest.spool.segment import SetFrame, SweepRows
from crosswind.ingest.spool.segment_reader import SegmentReader, Unpacked
from crosswind.ingest.spool.spool import batch_id

TEN_MINUTES_NS = 600_000_000_000


@dataclass(frozen=True)
class Batch:
    """A segment as it came, what its sender calls it, and the nodes of which its samples may be; none are all."""

    segment: Unpacked
    identity: str
    nodes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Samples:
    """A batch's sweeps, none of them empty, of few days and of its sets in the order of their parts."""

    batch: Batch
    sweeps: Sequence[SweepRows]
    sets: Sequence[MetricSet]

    @property
    def noted(self) -> NewBatch:
        name = self.batch.segment.name
        rows = sum(len(sweep.rows) for sweep in self.sweeps)
        return NewBatch(self.batch.identity, name, rows, made_ns=made_in(name))


def store_together(store: Store, batches: Sequence[Batch]) -> dict[str, Received]:
    """Store what can be stored at once, for senders who may write all rows. Return it by identity.

    Those left out are not stored, and may be stored one by one.
    """
    distinct = {batch.identity: batch for batch in batches}
    if len(distinct) < 2 or not _is_safe(store.whole.lake.storage):
        return {}
    with suppress(ProjectError, OSError, SQLAlchemyError, pa.ArrowException):
        return _stored(store.whole, list(distinct.values()))
    return {}


@lru_cache(maxsize=20)
def _is_safe(storage: Storage) -> bool:
    return storage.why_unsafe(MOUNTS) is None


def _stored(store: Store, batches: Sequence[Batch]) -> dict[str, Received]:
    with store.catalog.read() as session:
        stored = session.batches_among([batch.identity for batch in batches])
    with store.lake.turn:
        taken = list(_plain([batch for batch in batches if batch.identity not in stored], store.catalog.clock()))
        if len(taken) < 2:
            return {}
        tables, parts = _tables(store.lake, taken), _parts(taken)
        staged = stage_together(store.lake, [(table, parts[set_of(table.schema)]) for table in tables])
    published = store.lake.storage.publish_together(staged)
    with store.catalog.write() as session:
        noted = [one.noted for one in taken]
        session.lake_files.add(published.files)
        session.add_batches(noted, _landings(taken))
    return {note.batch_id: Received(note.batch_id, Fate.STORED, note.rows, ()) for note in noted}


def _plain(batches: Sequence[Batch], now_ns: int) -> Iterator[_Samples]:
    last_ns = time.time_ns() + AHEAD_NS
    for batch in batches:
        reader = SegmentReader(batch.segment, parse_quickly)
        frames = list(reader)
        sweeps = [frame for frame in frames if isinstance(frame, SweepRows)]
        sets = list(dict.fromkeys(sweep.metric_set for sweep in sweeps))
        is_plain = reader.report.reason is None and all(isinstance(frame, SetFrame | SweepRows) for frame in frames)
        is_plain = is_plain and is_young(batch.segment.name, now_ns)
        is_plain = is_plain and (not batch.nodes or all(sweep.node in batch.nodes for sweep in sweeps))
        if is_plain and _are_usual(sweeps, sets, last_ns) and batch_id(batch.segment) == batch.identity:
            yield _Samples(batch, sweeps, sets)


def _are_usual(sweeps: Sequence[SweepRows], sets: Collection[MetricSet], last_ns: int) -> bool:
    times = [sweep.ts_ns for sweep in sweeps if sweep.rows]
    if not times or len(times) < len(sweeps) or len(sets) > SETS_MAX:
        return False
    return min(times) >= 0 and max(times) <= last_ns and max(times) - min(times) < DAY_NS


def _tables(lake: Lake, taken: Sequence[_Samples]) -> list[pa.Table]:
    builder = BatchBuilder(lake.check)
    for one in taken:
        for sweep in one.sweeps:
            builder.add(sweep)
    tables = builder.tables()
    if builder.refused:
        raise MalformedError(builder.refused[0])
    return tables


def _landings(taken: Sequence[_Samples]) -> list[Landing]:
    """Return a landing for the batches that begin in the same ten minutes: what came late is of another time."""
    by_time: dict[int, list[Landing]] = {}
    for one in taken:
        times = [sweep.ts_ns for sweep in one.sweeps]
        landing = Landing(min(times), max(times), nodes=frozenset(sweep.node for sweep in one.sweeps))
        by_time.setdefault(landing.first_ns // TEN_MINUTES_NS, []).append(landing)
    return list(map(together, by_time.values()))


def _parts(taken: Sequence[_Samples]) -> dict[MetricSet, list[str]]:
    """Return by set the names of the parts that `receive` would make of these batches."""
    parts: dict[MetricSet, list[str]] = {}
    for one in taken:
        for number, metric_set in enumerate(one.sets):
            parts.setdefault(metric_set, []).append(f"{one.batch.identity[:32]}-{number}")
    return parts
