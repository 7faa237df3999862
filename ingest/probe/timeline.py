"""The step timeline of one rank: a buffer that the loop's thread fills and a writer empties.

The loop's thread only notes what happened; rows are made by the writer, when steps are settled. Times are
`perf_counter_ns`; they become UTC when rows are made, so a clock that is set during a step does no harm.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite

from crosswind.data.errors import InvalidInputError
from crosswind.data.metric import MetricSet, Scalar
from crosswind.data.steps import COLLECTIVE, LOOP_SETS, PROGRESS, STEP
from crosswind.ingest.probe.step import (
    MARKED_PHASES,
    Arrival,
    Row,
    Step,
    Stretch,
    collective_row,
    numbered,
    step_row,
)
from crosswind.ingest.probe.thread_usage import Reading, ThreadUsageReader

BUFFERED_ROWS = 20_000  # of each set, some 10 MB: when the disk is gone, older rows are let go of and counted
UNSETTLED_STEPS = 5_000

Columns = dict[str, list[Scalar]]


class Timeline:
    """Steps, collectives and recorded values of one rank, in the order they happened."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._usage = ThreadUsageReader()
        self._lock = threading.RLock()  # what a garbage collection lets go of within it may tell of its own end
        self._thread: int | None = None  # the loop's
        self._followed: int | None = None  # the same, by the kernel's number
        self._rows: dict[str, list[Row]] = {metric_set.name: [] for metric_set in LOOP_SETS}
        self._current: Step | None = None
        self._ended: list[Step] = []
        self._next_number = 0
        self._last_end: tuple[int, Reading] | None = None
        self._undo: list[Callable[[], None]] = []
        self.watched: dict[int, tuple[object, object]] = {}  # by its id: a thing, and what is used in its place
        self.dropped_rows = 0

    @property
    def is_in_step(self) -> bool:
        """Whether a step runs."""
        return self._current is not None

    @property
    def next_number(self) -> int:
        """The number of the step that runs, or comes."""
        return self._next_number

    def begin_step(self) -> None:
        """A turn of the loop begins where the last one ended, with waiting for its batch."""
        thread = threading.get_native_id()  # of two threads, one after the other, Python's own number may be the same
        if thread != self._followed:
            self._followed, self._thread, self._last_end = thread, threading.get_ident(), None
            self._usage.follow()
        begin, usage = self._last_end or (time.perf_counter_ns(), self._usage.read())
        self._current = Step(self._next_number, begin, time.time_ns() - time.perf_counter_ns(), usage)

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
        step.end, step.end_usage = self._last_end = time.perf_counter_ns(), self._usage.read()
        self._next_number += 1
        if len(self._ended) < UNSETTLED_STEPS:
            self._ended.append(step)
        else:  # the writer hangs in a file system that does not answer
            self.dropped_rows += 1

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

    def arrive(self, utc_ns: int | None = None) -> Arrival | None:
        """This rank has come to a collective, now or when somebody else noted it; None outside a step.

        What other threads of the rank do beside the loop, such as writing a checkpoint, is in no step: None as well.
        Ranks come to their collectives in one order, but see them end in any: so they are numbered by arrival.
        One in a marked phase, or while batches are waited for, is part of that and no exposed communication.
        """
        step = self._current
        if step is None or threading.get_ident() != self._thread:
            return None
        now = time.perf_counter_ns() if utc_ns is None else utc_ns - step.to_utc
        arrival = Arrival(step, now, bool(step.body) and not step.open_phases)
        step.arrivals.append(arrival)
        return arrival

    def collective(
        self, arrival: Arrival, *, size_bytes: int, operation: str, group: str, blocked_since: int | None = None
    ) -> None:
        """The collective that this rank came to has ended, now; from any thread.

        `blocked_since` says since when the calling thread stood still for it, if it did: that counts for the step that
        runs now, which need not be the one in which the collective began.
        """
        self.collective_until(time.perf_counter_ns(), arrival, (size_bytes, operation, group), blocked_since)

    def collective_until(
        self, end: int | None, arrival: Arrival, what: tuple[int | None, str, str], blocked_since: int | None = None
    ) -> None:
        """The same of one that ended then, or of whose end nobody knows; `what` is its bytes, operation and group."""
        step = self._current
        if step and step.body and not step.open_phases and threading.get_ident() == self._thread:
            arrival.marked = step.marked_total
            if blocked_since is not None and end is not None:
                step.blocked.append(Stretch(max(blocked_since, step.body), end, step.marked_total))
        with self._lock:
            arrival.end = end
            arrival.size_bytes, arrival.operation, arrival.group = what
            if arrival.number is not None:  # its step is settled already
                self._rows[COLLECTIVE.name].append(collective_row(arrival, self._rank))

    def record(self, name: str, value: float) -> None:
        """A value of this step, or of the next one when none runs; what is no finite number is kept as unknown."""
        row = (time.time_ns(), self._rank, self._next_number, name, value if isfinite(value) else None)
        with self._lock:
            self._rows[PROGRESS.name].append(row)

    def on_close(self, undo: Callable[[], None]) -> None:
        """Has something done once, when the run is over."""
        self._undo.append(undo)

    def settle(self) -> None:
        """Makes rows of the steps that have ended; a collective that has not ended yet gets its row when it does."""
        count = len(self._ended)
        with self._lock:
            for step in self._ended[:count]:
                self._rows[STEP.name].append(step_row(step, self._rank))
                told = [arrival for arrival in numbered(step) if arrival.operation is not None]
                self._rows[COLLECTIVE.name] += [collective_row(arrival, self._rank) for arrival in told]
        del self._ended[:count]

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
        self.abandon_step()
        self._usage.close()
        while self._undo:
            self._undo.pop()()
        self.watched.clear()
        with self._lock:
            left = sum(len(rows) for rows in self._rows.values())
            for rows in self._rows.values():
                rows.clear()
        return self.dropped_rows + left


def _by_column(metric_set: MetricSet, rows: list[Row]) -> Columns:
    if not rows:
        return {}
    names = (column.name for column in metric_set.columns if column.name != "run_id")
    return {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
