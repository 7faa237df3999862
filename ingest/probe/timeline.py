"""The step timeline of one rank: a buffer that the loop's thread fills and a writer empties.

Times are `perf_counter_ns`; they become UTC when rows are made, so a clock that is set during a step does no harm.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from crosswind.data.errors import InvalidInputError
from crosswind.data.metric import Scalar
from crosswind.data.steps import COLLECTIVE, STEP
from crosswind.ingest.probe.thread_usage import ThreadUsage, ThreadUsageReader

MARKED_PHASES = ("checkpoint", "other")
BUFFERED_ROWS = 200_000  # when the disk is gone, older rows are let go of and counted

Row = tuple[Scalar, ...]
Columns = dict[str, list[Scalar]]
STEP_COLUMNS = tuple(column.name for column in STEP.columns if column.name != "run_id")
COLLECTIVE_COLUMNS = tuple(column.name for column in COLLECTIVE.columns if column.name != "run_id")


@dataclass
class _Step:
    number: int
    begin: int
    usage: ThreadUsage
    body: int = 0  # when the batch was there
    marked: dict[str, int] = field(default_factory=dict)
    last_arrival: int = 0
    last_end: int = 0
    collectives: int = 0


class Timeline:
    """Steps and collectives of one rank, in the order they happened."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._usage = ThreadUsageReader()
        self._lock = threading.Lock()
        self._steps: list[Row] = []
        self._collectives: list[Row] = []
        self._current: _Step | None = None
        self._next_number = 0
        self._last_end: int | None = None
        self._to_utc = time.time_ns() - time.perf_counter_ns()
        self.dropped_rows = 0

    def begin_step(self) -> None:
        """A turn of the loop begins where the last one ended, with waiting for its batch."""
        begin = time.perf_counter_ns() if self._last_end is None else self._last_end
        self._current = _Step(self._next_number, begin, self._usage.read())

    def batch_arrived(self) -> None:
        """The batch is there; the loop's body begins."""
        if self._current:
            self._current.body = time.perf_counter_ns()

    def end_step(self) -> None:
        """The loop's body is done."""
        step, self._current = self._current, None
        if step is None:
            return
        end, usage = time.perf_counter_ns(), self._usage.read()
        self._last_end = end
        self._next_number += 1
        with self._lock:
            self._steps.append(_step_row(step, end, usage, (self._rank, self._to_utc)))

    def abandon_step(self) -> None:
        """There was no further batch, or the loop was left within a step: that turn is not counted."""
        self._current = None
        self._last_end = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time inside belongs to this phase. Raises: InvalidInputError."""
        if name not in MARKED_PHASES:
            raise InvalidInputError(f"phase {name!r}: expected one of {', '.join(MARKED_PHASES)}")
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            if step := self._current:
                step.marked[name] = step.marked.get(name, 0) + time.perf_counter_ns() - begin

    def collective(self, arrival: int, end: int, *, size_bytes: int, operation: str, group: str) -> None:
        """A collective at which this rank arrived and which ended; from any thread. Times by perf_counter_ns."""
        step = self._current
        if step is None:
            return
        with self._lock:
            number, step.collectives = step.collectives, step.collectives + 1
            step.last_arrival = max(step.last_arrival, arrival)
            step.last_end = max(step.last_end, end)
            key = (arrival + self._to_utc, self._rank, step.number, number)
            self._collectives.append((*key, end - arrival, size_bytes, operation, group))

    def take(self) -> tuple[Columns, Columns]:
        """The steps and collectives since the last call, by column, without run_id; they are no longer kept here."""
        with self._lock:
            steps, self._steps = self._steps, []
            collectives, self._collectives = self._collectives, []
        return _by_column(STEP_COLUMNS, steps), _by_column(COLLECTIVE_COLUMNS, collectives)

    def make_room(self) -> None:
        """Lets go of the oldest rows when nobody takes them, so that memory stays bounded."""
        with self._lock:
            for rows in (self._steps, self._collectives):
                excess = len(rows) - BUFFERED_ROWS
                if excess > 0:
                    del rows[:excess]
                    self.dropped_rows += excess


def _step_row(step: _Step, end: int, usage: ThreadUsage, origin: tuple[int, int]) -> Row:
    rank, to_utc = origin
    duration = end - step.begin
    waiting = max(step.body - step.begin, 0)
    comm = max(step.last_end - step.last_arrival, 0) if step.collectives else 0
    checkpoint, other = (step.marked.get(name, 0) for name in MARKED_PHASES)
    compute = max(duration - waiting - comm - checkpoint - other, 0)
    tail = end - step.last_end if step.collectives else None
    phases = (duration, waiting, compute, comm, checkpoint, other, tail)
    return (step.begin + to_utc, rank, step.number, *phases, *_used(step.usage, usage))


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


def _by_column(names: tuple[str, ...], rows: list[Row]) -> Columns:
    return {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)} if rows else {}
