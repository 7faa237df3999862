"""One sweep: every collector read once into the spool, and how each of them fared."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from crosswind.data.errors import InvalidInputError, MalformedError
from crosswind.data.metric import NODE_KEYS, Collector, Column, Kind, MetricSet, Sample, Scalar
from crosswind.ingest.collectors import SourceStatus, reason_of
from crosswind.ingest.spool import SpoolWriter

NANOSECONDS = 1_000_000_000
LOOP = "loop"
COLLECTOR = MetricSet(
    "collector",
    "how each collector (the device) fared; device loop is the agent as a whole",
    (
        Column("up", "1 when it could be read, else 0"),
        Column("duration_seconds", "time that the read took", dtype="float64", unit="seconds"),
        Column("reason", "why it could not be read, or what the loop has to report", Kind.FACT, "string"),
        Column("lateness_seconds", "start of the sweep after its due time", dtype="float64", unit="seconds"),
        Column("missed_ticks_total", "sweeps left out because an earlier one took too long", Kind.COUNTER),
        Column("lost_sweeps_total", "sweeps that the spool could not take", Kind.COUNTER),
        Column("dropped_segments_total", "unshipped segments given up for want of space", Kind.COUNTER),
        Column("cpu_seconds_total", "processor time of the agent itself", Kind.COUNTER, "float64", "seconds"),
    ),
)


def with_node_keys(metric_set: MetricSet) -> MetricSet:
    """The set as it stands in the spool and the lake: a collector's own columns behind the keys of the row."""
    return replace(metric_set, columns=NODE_KEYS + metric_set.columns)


class Sweep:
    """Reads collectors into a spool as rows of one node; a source that fails is down, with the reason."""

    def __init__(self, collectors: Iterable[Collector], spool: SpoolWriter, *, node: str, boot_id: str | None) -> None:
        self._sources = [(collector, with_node_keys(collector.metric_set)) for collector in collectors]
        self._refused: list[SourceStatus] = []
        self._collector_set = with_node_keys(COLLECTOR)
        self._spool = spool
        self._node = node
        self._boot_id = boot_id

    def refuse(self, statuses: Iterable[SourceStatus]) -> None:
        """Sources that could not even be made: every sweep says that they are down, and why."""
        self._refused.extend(statuses)

    def take(self, loop: Mapping[str, Scalar]) -> None:
        """Reads every collector once; `loop` is what the agent has to say of itself.

        Raises: UnavailableError when the spool cannot take it.
        """
        started = time.perf_counter()
        outcomes = [self._outcome(collector, metric_set) for collector, metric_set in self._sources]
        outcomes += [_outcome(status.name, 0.0, status.reason) for status in self._refused]
        duration = time.perf_counter() - started
        agent = {
            "dropped_segments_total": self._spool.dropped_segments,
            "cpu_seconds_total": time.process_time(),
        }
        outcomes.append(Sample(LOOP, {"up": 1, "duration_seconds": duration, **agent, **loop}))
        self._append(self._collector_set, outcomes, time.time_ns())

    def _outcome(self, collector: Collector, metric_set: MetricSet) -> Sample:
        """Reads one collector; the rows are stamped with the instant at which its own reading began."""
        ts_ns, started = time.time_ns(), time.perf_counter()
        reason = None
        try:
            samples = list(collector.read())
            _refuse_unknown(metric_set, samples)
        except Exception as error:  # noqa: BLE001 - whatever one source raises, the others must go on
            return _outcome(metric_set.name, time.perf_counter() - started, reason_of(error))
        duration = time.perf_counter() - started
        try:
            self._append(metric_set, samples, ts_ns)
        except InvalidInputError as error:
            reason = reason_of(error)
        return _outcome(metric_set.name, duration, reason)

    def _append(self, metric_set: MetricSet, samples: Sequence[Sample], ts_ns: int) -> None:
        if not samples:
            return
        rows = len(samples)
        columns: dict[str, Sequence[Scalar]] = {
            "ts_ns": [ts_ns] * rows,
            "node": [self._node] * rows,
            "device": [sample.device for sample in samples],
            "boot_id": [self._boot_id] * rows,
        }
        for column in metric_set.columns[len(NODE_KEYS) :]:
            columns[column.name] = [sample.values.get(column.name) for sample in samples]
        self._spool.append_rows(metric_set, columns)


def _outcome(device: str, duration_seconds: float, reason: str | None) -> Sample:
    values = {"up": int(reason is None), "duration_seconds": duration_seconds, "reason": reason}
    return Sample(device, values)


def _refuse_unknown(metric_set: MetricSet, samples: Iterable[Sample]) -> None:
    known = {column.name for column in metric_set.columns[len(NODE_KEYS) :]}
    for sample in samples:
        unknown = sample.values.keys() - known
        if unknown:
            raise MalformedError(f"{metric_set.name} of {sample.device}: columns {sorted(unknown)} are not in the set")
