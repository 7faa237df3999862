"""One reading of one source: its samples, when it was read and how long that took, or why it failed."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import Collector, MetricSet, Sample, Scalar
from crosswind.ingest.collectors import reason_of
from crosswind.ingest.collectors.row import GivesRows

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of one source, stamped with the instant at which the reading began; none where it failed."""

    source: str
    ts_ns: int
    mono_ns: int
    duration_seconds: float
    rows: Sequence[Sequence[Scalar]] = ()
    reason: str | None = None


class Reader(Protocol):
    """Reads one source for the sweep."""

    source: str
    metric_set: MetricSet

    def readings(self, *, is_due: bool) -> list[Reading]:
        """Return the readings that are ready."""
        ...

    @property
    def is_hung(self) -> bool:
        """Return whether it still waits for its source."""
        ...

    def finish(self, timeout_seconds: float) -> list[Reading]:
        """Wait for the readings still to come, and return them."""
        ...


class InlineReader:
    """Reads its source on the caller's thread."""

    def __init__(self, source: str, collector: Collector) -> None:
        self.source = source
        self.metric_set = collector.metric_set
        self._collector = collector
        self._columns = [column.name for column in collector.metric_set.columns]
        self._known = frozenset(self._columns)
        self._read_rows: Callable[[], Sequence[Sequence[Scalar]]] = (
            collector.read_rows if isinstance(collector, GivesRows) else self._rows_of_samples
        )

    def readings(self, *, is_due: bool) -> list[Reading]:
        """Return a reading if one is due."""
        return [self.read()] if is_due else []

    @property
    def is_hung(self) -> bool:
        """Return False: the source has answered when `read` returns."""
        return False

    def finish(self, timeout_seconds: float) -> list[Reading]:  # noqa: ARG002 - it never keeps anybody waiting
        """Return nothing: no reading is ever late."""
        return []

    def read(self) -> Reading:
        """Read the source now; an exception becomes the reason of a failed reading."""
        ts_ns, mono_ns = time.time_ns(), time.monotonic_ns()
        rows: Sequence[Sequence[Scalar]]
        try:
            rows, reason = self._read_rows(), None
        except Exception as error:  # noqa: BLE001 - no failure of one source may stop the others
            rows, reason = (), reason_of(error)
        return Reading(self.source, ts_ns, mono_ns, _seconds_since(mono_ns), rows, reason)

    def _rows_of_samples(self) -> list[list[Scalar]]:
        return [self._row(sample) for sample in self._collector.read()]

    def _row(self, sample: Sample) -> list[Scalar]:
        values = sample.values
        if not self._known.issuperset(values):
            unknown = sorted(set(values) - self._known)
            raise MalformedError(f"{self.metric_set.name} of {sample.device}: columns {unknown} are not in the set")
        return [sample.device, *map(values.get, self._columns)]


class ThreadReader:
    """Reads its source on a thread of its own, so that one that hangs delays nobody.

    A reading arrives one sweep after its request. While the source does not answer it is down, and no second request
    is made; its answer, when it comes at last, is taken.
    """

    def __init__(self, inline: InlineReader, timeout_seconds: float) -> None:
        self.source = inline.source
        self.metric_set = inline.metric_set
        self._inline = inline
        self._timeout_ns = round(timeout_seconds * NANOSECONDS)
        self._requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Reading] = queue.SimpleQueue()
        self._is_served = False  # by a thread that takes requests
        self._requested_ns: int | None = None

    @property
    def is_hung(self) -> bool:
        """Return whether a request is still open."""
        return self._requested_ns is not None

    def readings(self, *, is_due: bool) -> list[Reading]:
        """Return the answer, if it has come; when due, request the next one. A source that has not answered is down."""
        readings = []
        if not self._answers.empty():
            readings.append(self._answers.get())
            self._requested_ns = None
        if is_due and self._requested_ns is None:
            readings += self._ask()
        elif is_due and self._requested_ns is not None and time.monotonic_ns() - self._requested_ns > self._timeout_ns:
            waited = _seconds_since(self._requested_ns)
            reason = f"UnavailableError: no answer for {waited:.1f} s, expected one within {self._timeout_ns / 1e9} s"
            readings.append(Reading(self.source, time.time_ns(), time.monotonic_ns(), waited, reason=reason))
        return readings

    def finish(self, timeout_seconds: float) -> list[Reading]:
        """Return the outstanding answer, if it comes in time; the thread ends when its source has answered."""
        readings = []
        if self._requested_ns is not None:
            with suppress(queue.Empty):
                readings.append(self._answers.get(timeout=max(0.0, timeout_seconds)))
                self._requested_ns = None
        self._requests.put(False)
        self._is_served = False
        return readings

    def _ask(self) -> list[Reading]:
        asked_ns = time.monotonic_ns()
        if not self._is_served:
            self._requests = queue.SimpleQueue()
            thread = threading.Thread(
                target=self._serve, args=(self._requests,), name=f"source {self.source}", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:  # the node, or its control group, has no room for another thread
                reason = f"UnavailableError: {error}"
                return [Reading(self.source, time.time_ns(), asked_ns, _seconds_since(asked_ns), reason=reason)]
            self._is_served = True
        self._requested_ns = asked_ns
        self._requests.put(True)
        return []

    def _serve(self, questions: "queue.SimpleQueue[bool]") -> None:
        while questions.get():
            self._answers.put(self._inline.read())


def _seconds_since(mono_ns: int) -> float:
    return (time.monotonic_ns() - mono_ns) / NANOSECONDS
