"""One sweep: every source that is due is read once into the spool, with the state of every source."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from crosswind.data.schema.metric import Collector, Column, Kind, MetricSet, Scalar, with_node_keys
from crosswind.ingest.agent.reading import NANOSECONDS, InlineReader, Reader, Reading, ThreadReader
from crosswind.ingest.collectors import Refused
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.exposition.latest import LatestReading
from crosswind.ingest.spool.spool import SpoolWriter, SweepRows

COLLECTOR = MetricSet(
    "collector",
    "the state of each source (the device) when it was read",
    (
        Column("up", "1 when it could be read, else 0"),
        Column("duration_seconds", "time that the read took", dtype="float64", unit="seconds"),
        Column("samples", "rows that it gave", dtype="int64"),
        Column("failures_total", "reads that failed", Kind.COUNTER),
        Column("reason", "why it could not be read", Kind.FACT, "string"),
    ),
)
FAILURES = 3  # in a row, after which a source counts as absent
ABSENT_NS = 60 * NANOSECONDS  # between looks at an absent source


@dataclass
class TimedSource:
    """A source's reader with its schedule: due at the same instants on every node."""

    reader: Reader
    interval_ns: int = 0
    failures_total: int = 0
    _failures: int = 0  # since it was last up
    _looked_ns: int | None = None

    def is_due(self, tick_ns: int) -> bool:
        """Return whether to read it at this tick; call it once a tick. An absent source is tried once a minute."""
        interval_ns = max(self.interval_ns, ABSENT_NS) if self._failures >= FAILURES else self.interval_ns
        looked_ns, self._looked_ns = self._looked_ns, tick_ns
        return looked_ns is None or not interval_ns or tick_ns // interval_ns != looked_ns // interval_ns

    def note(self, *, has_failed: bool) -> None:
        """Note whether a reading succeeded."""
        self._failures = self._failures + 1 if has_failed else 0
        self.failures_total += has_failed


class Sweep:
    """Reads sources into a spool as rows of one node; a source that fails is down, with the reason."""

    def __init__(self, sources: Iterable[TimedSource], spool: SpoolWriter, *, node: str, boot_id: str | None) -> None:
        self.latest: dict[str, LatestReading] = {}  # by source, with the agent's metrics of itself
        self.dropped_rows = 0  # that did not fit their set
        self._sources = list(sources)
        self._sets = {source.reader.source: with_node_keys(source.reader.metric_set) for source in self._sources}
        self._refused: list[Refused] = []
        self._collector_set = with_node_keys(COLLECTOR)
        self._spool = spool
        self._node = node
        self._boot_id = boot_id

    def hung(self) -> dict[str, Reader]:
        """The readers of sources that have not answered yet."""
        readers = {source.reader.source: source.reader for source in self._sources}
        return {name: reader for name, reader in readers.items() if reader.is_hung}

    def up(self) -> list[str]:
        """The sources whose last reading went well."""
        return [name for name, shown in self.latest.items() if shown.reason is None and name in self._sets]

    def refuse(self, refused: Iterable[Refused]) -> None:
        """Report sources that could not even be made as down, with the reason, in the next sweep."""
        self._refused.extend(refused)

    def take(self, tick_ns: int, own: Callable[[], Iterable[SweepRows]] = tuple) -> None:
        """Read every source that is due at this tick; `own` gives the agent's metrics of itself, read last.

        Raises: UnavailableError when the spool cannot take it.
        """
        readings = [
            (source, reading)
            for source in self._sources
            for reading in source.reader.readings(is_due=source.is_due(tick_ns))
        ]
        self._store(readings, own)

    def finish(self, timeout_seconds: float, own: Callable[[], Iterable[SweepRows]] = tuple) -> None:
        """Take the late readings of slow sources, waiting at most this long for all of them.

        Raises: as `take`.
        """
        until = time.monotonic() + timeout_seconds
        self._store(
            [
                (source, reading)
                for source in self._sources
                for reading in source.reader.finish(until - time.monotonic())
            ],
            own,
        )

    def keyed(self, metric_set: MetricSet, rows: Sequence[Sequence[Scalar]]) -> SweepRows:
        """Return the rows with this node and this moment in front."""
        return SweepRows(metric_set, time.time_ns(), time.monotonic_ns(), self._node, self._boot_id, rows)

    def _store(self, readings: Sequence[tuple[TimedSource, Reading]], own: Callable[[], Iterable[SweepRows]]) -> None:
        reads = [(source, reading, self._rows(reading)) for source, reading in readings]
        filled = [rows for _, _, rows in reads if rows.rows]

        def follow_up(reasons: list[str | None]) -> Iterable[SweepRows]:
            refusals = iter(reasons)
            outcomes = [self._outcome(*read, next(refusals) if read[2].rows else None) for read in reads]
            outcomes += [(refused.name, 0, None, None, None, refused.reason) for refused in self._refused]
            self._refused.clear()
            ours = list(own())
            self.latest |= {rows.metric_set.name: LatestReading(rows, 0.0, None) for rows in ours}
            return [*([self.keyed(self._collector_set, outcomes)] if outcomes else []), *ours]

        self._spool.append_sweep(filled, follow_up)

    def _outcome(self, source: TimedSource, reading: Reading, rows: SweepRows, refusal: str | None) -> Sequence[Scalar]:
        reason = reading.reason
        if refusal:
            self.dropped_rows += len(rows.rows)
            rows, reason = replace(rows, rows=()), f"MalformedError: {refusal}"[:500]
        source.note(has_failed=reason is not None)
        self.latest[reading.source] = LatestReading(rows, reading.duration_seconds, reason)
        duration = round(reading.duration_seconds, 7)
        return reading.source, int(reason is None), duration, len(rows.rows), source.failures_total, reason

    def _rows(self, reading: Reading) -> SweepRows:
        metric_set = self._sets[reading.source]
        return SweepRows(metric_set, reading.ts_ns, reading.mono_ns, self._node, self._boot_id, reading.rows)


def timed(collector: Collector, source: Source | None = None, hung: Reader | None = None) -> TimedSource:
    """Return a collector at its source's pace; one with a time-out is read on a thread of its own.

    A reader that still waits for its source is taken over: a second thread would hang as well.
    """
    name = source.name if source else collector.metric_set.name
    reader: Reader = InlineReader(name, collector)
    if source is None:
        return TimedSource(reader)
    if source.timeout_seconds is not None:
        reader = hung or ThreadReader(InlineReader(name, collector), source.timeout_seconds)
    return TimedSource(reader, round(source.interval_seconds * NANOSECONDS))
