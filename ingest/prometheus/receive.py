"""What others send, one request after another, into the store exactly once."""

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from sqlalchemy.exc import IntegrityError

from crosswind.data.errors import UnavailableError
from crosswind.data.lake import Lake
from crosswind.data.store import Store
from crosswind.ingest.otlp.messages import decoded
from crosswind.ingest.otlp.points import Points
from crosswind.ingest.prometheus.known_series import KnownSeries
from crosswind.ingest.prometheus.remote_write import Decoder, Refusals
from crosswind.ingest.prometheus.sample_tables import Samples, tables, without_repeats

log = logging.getLogger("crosswind.ingest")
KEPT_SERIES = 200_000  # some 200 MB; beyond it everything is worked out anew

ONE_DAY_NS = 86_400 * 10**9
FUTURE = "a time more than a day ahead of this server's clock"


@dataclass(frozen=True)
class Received:
    """A request that its sender may forget: rows that it added, and samples that were not taken, by reason."""

    rows: int
    refusals: Counter[str]
    is_new: bool = True


class Receiver:
    """Takes requests into a store; when one is answered, its rows are on the disk."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decoder = Decoder(KnownSeries())

    def remote_write(self, body: bytes) -> Received:
        """Stores a WriteRequest. Raises: MalformedError when it is none, UnavailableError."""
        return self._take("prometheus", body, lambda refusals: self._written(body, refusals))

    def otlp(self, body: bytes, value: object = None) -> Received:
        """Stores an ExportMetricsServiceRequest; `value` is what its JSON says. Raises: as `remote_write`."""
        return self._take("otlp", body, lambda refusals: _points(decoded(body) if value is None else value, refusals))

    def _written(self, body: bytes, refusals: Refusals) -> list[pa.Table]:
        if max(len(self._decoder.known), len(self._decoder.codes)) > KEPT_SERIES:
            self._decoder = Decoder(KnownSeries(families=self._decoder.known.families))
        return _tables(self._decoder.known, self._decoder.samples(body, refusals), refusals)

    def _take(self, origin: str, body: bytes, tables_of: Callable[[Refusals], list[pa.Table]]) -> Received:
        identity = hashlib.sha256(origin.encode() + b"\0" + body).hexdigest()
        try:
            return self._stored(origin, identity, tables_of)
        except (OSError, UnavailableError) as error:
            log.error("a request of %s cannot be stored now: %s", origin, error)
            raise UnavailableError("the store cannot take it now") from error

    def _stored(self, origin: str, identity: str, tables_of: Callable[[Refusals], list[pa.Table]]) -> Received:
        refusals: Refusals = Counter()
        with self._store.catalog.read() as session:
            if session.has_batch(identity):
                return Received(0, refusals, is_new=False)
        lake: Lake = self._store.lake
        with lake.turn:
            told = tables_of(refusals)
            staged = lake.stage({f"{identity[:32]}-{number}": table for number, table in enumerate(told)})
        refusals = +refusals
        rows = sum(map(len, told))
        if not told:
            return Received(0, refusals)
        lake.publish(staged)
        try:
            with self._store.catalog.write() as session:
                session.add_batch(identity, origin, row_count=rows, skipped=refusals.total())
        except IntegrityError:  # the same request came twice at once: the same files, once
            return Received(0, refusals, is_new=False)
        return Received(rows, refusals)


def _points(value: object, refusals: Refusals) -> list[pa.Table]:
    points = Points(KnownSeries())
    points.add(value)
    refusals.update(points.refusals)
    return _tables(points.known, points.samples(), refusals)


def _tables(known: KnownSeries, samples: Samples, refusals: Refusals) -> list[pa.Table]:
    is_believed = samples.ts_ns <= time.time_ns() + ONE_DAY_NS
    refusals[FUTURE] += int((~is_believed).sum())
    return list(tables(known, without_repeats(samples.of(is_believed))))
