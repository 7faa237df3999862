"""Receiving remote-write and OTLP requests into the store, exactly once."""

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlalchemy.exc import IntegrityError

from crosswind.data.catalog.catalog import NewBatch
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.landings import landings_of
from crosswind.data.lake.publish import Staged, drop
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.landing import Landing
from crosswind.data.store.store import Store
from crosswind.ingest.series.known_series import KnownSeries
from crosswind.ingest.series.otlp_messages import decoded
from crosswind.ingest.series.otlp_points import Points
from crosswind.ingest.series.remote_write import Decoder, Refusals
from crosswind.ingest.series.sample_tables import Samples, row_bytes, tables, without_repeats
from crosswind.ingest.series.sizes import check_rows

log = logging.getLogger("crosswind.ingest")
KEPT_SECONDS = 3600.0  # when there is no room for all series: some of those kept may have ended
ONE_DAY_NS = 86_400 * 10**9
FUTURE = "a time more than a day ahead of this server's clock"


@dataclass(frozen=True)
class Received:
    """A request that its sender may forget: the rows that it added, and the samples that were not taken, by reason.

    Remarks are about samples that were taken.
    """

    rows: int
    refusals: Counter[str]
    is_new: bool = True
    remarks: Counter[str] = field(default_factory=Counter)


class Receiver:
    """Takes requests into a store; when one is answered, its rows are on the disk."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decoder, self._began = Decoder(KnownSeries()), time.monotonic()

    def remote_write(self, body: bytes) -> Received:
        """Store a WriteRequest. Raises: MalformedError when it is none (TooLargeError: too much), UnavailableError."""
        return self._take("prometheus", body, lambda refusals: self._written(body, refusals))

    def otlp(self, body: bytes, value_of: Callable[[bytes], object] = decoded) -> Received:
        """Store an ExportMetricsServiceRequest, which `value_of` reads. Raises: as `remote_write`."""
        remarks: Counter[str] = Counter()
        received = self._take("otlp", body, lambda refusals: _points(value_of(body), refusals, remarks))
        return replace(received, remarks=+remarks)

    def _written(self, body: bytes, refusals: Refusals) -> Iterator[pa.Table]:
        if self._decoder.is_full and time.monotonic() > self._began + KEPT_SECONDS:
            self._decoder, self._began = Decoder(KnownSeries(families=self._decoder.series.families)), time.monotonic()
        for series, samples in self._decoder.samples(body, refusals):
            yield from _tables(series, samples, refusals)

    def _take(self, origin: str, body: bytes, tables_of: Callable[[Refusals], Iterator[pa.Table]]) -> Received:
        identity = hashlib.sha256(origin.encode() + b"\0" + body).hexdigest()
        try:
            return self._stored(origin, identity, tables_of)
        except (OSError, UnavailableError) as error:
            log.error("a request of %s cannot be stored now: %s", origin, error)
            raise UnavailableError("the store cannot take it now") from error

    def _stored(self, origin: str, identity: str, tables_of: Callable[[Refusals], Iterator[pa.Table]]) -> Received:
        refusals: Refusals = Counter()
        with self._store.catalog.read() as session:
            if session.has_batch(identity):
                return Received(0, refusals, is_new=False)
        lake: Lake = self._store.lake
        with lake.turn:
            staged, rows, landings = _staged(lake, identity, tables_of(refusals))
        refusals = +refusals
        if not staged:
            return Received(0, refusals)
        files = lake.publish(staged).files
        try:
            with self._store.catalog.write() as session:
                session.lake_files.add(files)
                noted = NewBatch(identity, origin, rows, refusals.total(), time.time_ns())
                session.add_batches([noted], landings)
        except IntegrityError:  # the same request came twice at once: the same files, once
            return Received(0, refusals, is_new=False)
        return Received(rows, refusals)


def _staged(lake: Lake, identity: str, parts: Iterator[pa.Table]) -> tuple[list[Staged], int, list[Landing]]:
    """Write hidden files. Return them, their number of rows and landings; one table at a time is in memory."""
    staged: list[Staged] = []
    landings: list[Landing] = []
    rows = 0
    try:
        for number, table in enumerate(parts):
            staged += lake.stage({f"{identity[:32]}-{number}": table})
            landings += landings_of([table])
            rows += len(table)
    except BaseException:
        drop(staged)
        raise
    return staged, rows, landings


def _points(value: object, refusals: Refusals, remarks: Counter[str]) -> Iterator[pa.Table]:
    points = Points(KnownSeries())
    points.add(value)
    refusals.update(points.refusals)
    remarks.update(points.remarks)
    yield from _tables(points.series, points.samples(), refusals)


def _tables(series: KnownSeries, samples: Samples, refusals: Refusals) -> Iterator[pa.Table]:
    is_believed = samples.ts_ns <= time.time_ns() + ONE_DAY_NS
    refusals[FUTURE] += int((~is_believed).sum())
    samples = without_repeats(samples.of(is_believed))
    check_rows(float(row_bytes(series, samples).sum()))
    yield from tables(series, samples)
