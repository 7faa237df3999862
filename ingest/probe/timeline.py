"""The step timeline of one rank: a buffer that the loop's thread fills and a writer empties.

Times are `perf_counter_ns`; they become UTC when rows are made, so a clock that is set during a step does no harm.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from crosswind.data.errors import InvalidInputError
from crosswind.data.metric import MetricSet, Scalar
from crosswind.data.steps import COLLECTIVE, STEP
from crosswind.ingest.probe.thread_usage import ThreadUsage, ThreadUsageReader

MARKED_PHASES = ("checkpoint", "other")
BUFFERED_ROWS = 50_000  # of each set, some 30 MB: when the disk is gone, older rows are let go of and counted

Row = tuple[Scalar, ...]
Columns = dict[str, list[Scalar]]
TIMED = (STEP, COLLECTIVE)


@dataclass
class _Step:
    number: int
    begin: int
    to_utc: int
    usage: ThreadUsage
    body: int = 0  # when the batch was there
    waiting: int = 0
    marked: dict[str, int] = field(default_factory=dict)
    marked_total: int = 0
    open_phases: int = 0
    last_arrival: int = 0
    last_end: int = 0
    marked_at_last_end: int = 0
    collectives: int = 0


@dataclass(frozen=True, slots=True)
class Arrival:
    """This rank at a collective."""

    step: _Step
    number: int
    time: int
    is_exposed: bool


class Timeline:
    """Steps and collectives of one rank, in the order they happened."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._usage = ThreadUsageReader()
        self._lock = threading.Lock()
        self._rows: dict[str, list[Row]] = {metric_set.name: [] for metric_set in TIMED}
        self._current: _Step | None = None
        self._next_number = 0
        self._last_end: tuple[int, ThreadUsage] | None = None
        self.dropped_rows = 0

    def begin_step(self) -> None:
        """A turn of the loop begins where the last one ended, with waiting for its batch."""
        begin, usage = self._last_end or (time.perf_counter_ns(), self._usage.read())
        self._current = _Step(self._next_number, begin, time.time_ns() - time.perf_counter_ns(), usage)

    def batch_arrived(self) -> None:
        """The batch is there; the loop's body begins."""
        if step := self._current:
            step.body = time.perf_counter_ns()
            step.waiting = step.body - step.begin - step.marked_total

    def end_step(self) -> None:
        """The loop's body is done."""
        step, self._current = self._current, None
        if step is None:
            return
        end, usage = time.perf_counter_ns(), self._usage.read()
        self._last_end = (end, usage)
        self._next_number += 1
        with self._lock:
            self._rows[STEP.name].append(_step_row(step, end, usage, self._rank))

    def abandon_step(self) -> None:
        """There was no further batch, or the loop was left within a step: that turn is not counted."""
        self._current = None
        self._last_end = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time inside belongs to this phase, less that of phases within it. Raises: InvalidInputError."""
        if name not in MARKED_PHASES:
            raise InvalidInputError(f"phase {name!r}: expected one of {', '.join(MARKED_PHASES)}")
        step = self._current
        if step is None:
            yield
            return
        begin, marked_before = time.perf_counter_ns(), step.marked_total
        step.open_phases += 1
        try:
            yield
        finally:
            step.open_phases -= 1
            own = time.perf_counter_ns() - begin - (step.marked_total - marked_before)
            step.marked[name] = step.marked.get(name, 0) + own
            step.marked_total += own

    def arrive(self) -> "Arrival | None":
        """This rank has come to a collective; None outside a step.

        Ranks come to their collectives in one order, but see them end in any: so they are numbered here.
        One in a marked phase, or while batches are waited for, is part of that and no exposed communication.
        """
        step = self._current
        if step is None:
            return None
        with self._lock:
            number, step.collectives = step.collectives, step.collectives + 1
        return Arrival(step, number, time.perf_counter_ns(), bool(step.body) and not step.open_phases)

    def collective(self, arrival: "Arrival", *, size_bytes: int, operation: str, group: str) -> None:
        """The collective that this rank came to has ended, now; from any thread."""
        end, step = time.perf_counter_ns(), arrival.step
        with self._lock:
            if arrival.is_exposed:
                step.last_arrival = max(step.last_arrival, arrival.time)
                step.last_end = max(step.last_end, end)
                step.marked_at_last_end = step.marked_total
            key = (arrival.time + step.to_utc, self._rank, step.number, arrival.number)
            self._rows[COLLECTIVE.name].append((*key, end - arrival.time, size_bytes, operation, group))

    @contextmanager
    def taking(self, metric_set: MetricSet) -> Iterator[Columns]:
        """The set's rows until now, by column, without run_id; they are kept here when the block raises."""
        rows = self._rows[metric_set.name]
        with self._lock:
            taken = rows[:]
        yield _by_column(metric_set, taken)
        with self._lock:
            del rows[: len(taken)]

    def make_room(self) -> None:
        """Lets go of the oldest rows when nobody takes them, so that memory stays bounded."""
        with self._lock:
            for rows in self._rows.values():
                excess = len(rows) - BUFFERED_ROWS
                if excess > 0:
                    del rows[:excess]
                    self.dropped_rows += excess

    def close(self) -> int:
        """Lets go of everything; returns how many rows nobody ever took."""
        self._usage.close()
        with self._lock:
            left = sum(len(rows) for rows in self._rows.values())
            for rows in self._rows.values():
                rows.clear()
        return self.dropped_rows + left


def _step_row(step: _Step, end: int, usage: ThreadUsage, rank: int) -> Row:
    duration = end - step.begin
    checkpoint, other = (step.marked.get(name, 0) for name in MARKED_PHASES)
    rest = duration - step.waiting - step.marked_total
    comm = min(max(step.last_end - step.last_arrival, 0), rest)  # it may have gone on in a marked phase
    tail = end - step.last_end - (step.marked_total - step.marked_at_last_end) if step.last_end else None
    phases = (duration, step.waiting, rest - comm, comm, checkpoint, other, tail)
    return (step.begin + step.to_utc, rank, step.number, *phases, *_used(step.usage, usage))


def _used(before: ThreadUsage, after: ThreadUsage) -> Row:
    waited = None
    if before.run_queue_wait_ns is not None and after.run_queue_wait_ns is not None:
        waited = after.run_queue_wait_ns - before.run_queue_wait_ns
    return (
        after.user_ns - before.user_ns,
        after.system_ns - before.system_ns,
        waited,
        after.minor_faults - before.minor_faults,
        after.major_faults - before.major_faults,
        after.involuntary_switches - before.involuntary_switches,
    )


def _by_column(metric_set: MetricSet, rows: list[Row]) -> Columns:
    if not rows:
        return {}
    names = (column.name for column in metric_set.columns if column.name != "run_id")
    return {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
