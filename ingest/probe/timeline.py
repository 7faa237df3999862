"""The step timeline of one rank: a buffer that the loop's thread fills and a writer empties.

The loop's thread only notes events; rows are made by the writer, when steps are settled. Times are
`perf_counter_ns`; they become UTC when rows are made, so a clock that is set during a step does no harm.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from math import isfinite

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import MetricSet, Scalar
from crosswind.data.schema.steps import COLLECTIVE, LOOP_SETS, PROGRESS, STEP
from crosswind.ingest.probe.device_clock import DeviceClock, Mark
from crosswind.ingest.probe.step import (
    MARKED_PHASES,
    Arrival,
    Happened,
    Row,
    Step,
    What,
    collective_row,
    numbered,
    step_row,
)
from crosswind.ingest.probe.stops import Stops
from crosswind.ingest.probe.thread_usage import Reading, ThreadUsageReader

BUFFERED_ROWS = 20_000  # of each set, some 10 MB: when the disk is gone, older rows are dropped and counted
UNSETTLED_STEPS = 5_000

Columns = dict[str, list[Scalar]]


class Timeline:
    """Steps, collectives and recorded values of one rank, in the order they happened."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self._usage = ThreadUsageReader()
        self._lock = threading.RLock()  # an object collected while it is held may report its own end
        self._thread: int | None = None  # the loop's
        self._followed: int | None = None  # the same, by the kernel's number
        self._rows: dict[str, list[Row]] = {metric_set.name: [] for metric_set in LOOP_SETS}
        self._current: Step | None = None
        self._ended: list[Step] = []
        self._next_number = 0
        self._last_end: tuple[int, Reading] | None = None
        self._device: DeviceClock | None = None
        self._is_in_backward: Callable[[], bool] | None = None
        self._last_mark: Mark | None = None  # at the end of the last step
        self._late: list[Arrival] = []  # of settled steps, under way on the device
        self._undo: list[Callable[[], None]] = []
        self.stops = Stops()  # of the writer, which naps between two looks
        self.watched: dict[int, tuple[object, object]] = {}  # by its id: a watched object, and its stand-in
        self.has_seen_waits = False  # for other ranks
        self.dropped_rows = 0

    @property
    def is_in_step(self) -> bool:
        """Return whether a step runs."""
        return self._current is not None

    @property
    def next_number(self) -> int:
        """Return the number of the running or the next step."""
        return self._next_number

    def begin_step(self) -> None:
        """Begin a turn of the loop where the last one ended, with the wait for its batch."""
        thread = threading.get_native_id()  # of two threads, one after the other, Python's own number may be the same
        if thread != self._followed:
            self._followed, self._thread, self._last_end, self._last_mark = thread, threading.get_ident(), None, None
            self._usage.follow()
        begin, usage = self._last_end or (time.perf_counter_ns(), self._usage.read())
        self._current = step = Step(self._next_number, begin, time.time_ns() - time.perf_counter_ns(), usage)
        if self._device:
            mark = self._last_mark or self._device.mark()
            step.marks.append(mark)
            step.awaited.append((mark, Step.begin_now))

    def batch_arrived(self) -> None:
        """Note that the batch is there and the loop's body begins."""
        if step := self._current:
            step.is_in_body = True
            if self._device:
                self._note(step, Step.begin_body)
            else:
                step.begin_body(time.perf_counter_ns())

    def end_step(self) -> None:
        """End the step: the loop's body is done."""
        step = self._current
        if step is None:
            return
        if self._device:
            self._last_mark = self._note(step, Step.finish)
        else:
            step.end = time.perf_counter_ns()
        self._current = None
        step.end_usage = self._usage.read()
        self._last_end = step.end or time.perf_counter_ns(), step.end_usage
        if self._device:
            self._device.look()
        self._next_number += 1
        if len(self._ended) < UNSETTLED_STEPS:
            self._ended.append(step)
        else:  # the writer hangs in a file system that does not answer
            self.dropped_rows += 1

    def abandon_step(self) -> None:
        """Drop the running turn: there was no further batch, or the loop was left within a step."""
        self._current = self._last_end = self._last_mark = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time inside as this phase, less that of phases within it. Raises: InvalidInputError."""
        if name not in MARKED_PHASES:
            raise InvalidInputError(f"phase {name!r}: expected one of {', '.join(MARKED_PHASES)}")
        step = self._current
        if step is None:
            yield
            return
        self._note(step, Step.enter_phase)
        step.open_phases += 1
        try:
            yield
        finally:
            step.open_phases -= 1
            self._note(step, partial(Step.leave_phase, name=name))

    def arrive(self, utc_ns: int | None = None, came: Mark | None = None) -> Arrival | None:
        """Note that this rank has come to a collective, now or at a time noted elsewhere; None outside a step.

        Other threads' collectives, such as those of writing a checkpoint, are in no step: None as well.
        Ranks come to their collectives in one order, but see them end in any: so they are numbered by arrival.
        One in a marked phase, or during the wait for a batch, is part of that and no exposed communication.
        `came` is its place in the queue of the device that does it.
        """
        step = self._current
        if step is None or not self._is_of_the_loop():
            return None
        self.has_seen_waits |= came is None
        now = time.perf_counter_ns() if utc_ns is None else utc_ns - step.to_utc
        arrival = Arrival(step, now, step.is_in_body and not step.open_phases, came=came)
        if came is None and self._device:
            arrival.host_mark = self.mark()
        step.arrivals.append(arrival)
        return arrival

    def collective(
        self, arrival: Arrival, *, size_bytes: int, operation: str, group: str, blocked_since: int | None = None
    ) -> None:
        """Note, from any thread, that a collective has ended now.

        `blocked_since` is since when the calling thread stood still for it, if it did: that counts for the running
        step, which need not be the one in which the collective began.
        """
        self.collective_until(time.perf_counter_ns(), arrival, (size_bytes, operation, group), blocked_since)

    def collective_until(self, end: int | None, arrival: Arrival, what: What, blocked_since: int | None = None) -> None:
        """Note the end of a collective then, or an unknown end; `what` is its bytes, operation and group."""
        if step := self._waiting_step():
            seen = partial(Step.see_end, arrival=arrival, blocked_since=None if end is None else blocked_since)
            self._note_at(step, end or time.perf_counter_ns(), seen)
        with self._lock:
            arrival.end = end
            arrival.size_bytes, arrival.operation, arrival.group = what
            if arrival.number is not None:  # its step is settled already
                self._rows[COLLECTIVE.name].append(collective_row(arrival, self.rank))

    def waited(self, came: int, end: int, what: What) -> None:
        """Note that the loop stood still for a collective from this rank's arrival `came` until `end`.

        Noted in haste: after a long step each call of a function costs several microseconds.
        """
        step = self._current
        if step is None or not self._is_of_the_loop():
            return
        self.has_seen_waits = True
        if step.awaited:  # a device times the step's phases
            if arrival := self.arrive():
                arrival.time = came
                self.collective_until(end, arrival, what, came)
            return
        step.noted_waits.append((came, end, what, step.marked_total, step.is_in_body and not step.open_phases))

    def _waiting_step(self) -> Step | None:
        """Return the running step if an end now costs the loop time; None if it does not, or a device times it."""
        step = self._current
        is_exposed = step and step.is_in_body and not step.open_phases and self._is_of_the_loop()
        return step if is_exposed else None

    def _is_of_the_loop(self) -> bool:
        """Return whether the calling thread is the loop's, or one that computes gradients for it."""
        return threading.get_ident() == self._thread or bool(self._is_in_backward and self._is_in_backward())

    def use_device(self, clock: DeviceClock, is_in_backward: Callable[[], bool] | None = None) -> None:
        """Time steps from the next one on by this device's clock.

        `is_in_backward` says whether the calling thread computes gradients: those of a device have their own thread.
        """
        self._device, self._is_in_backward = clock, is_in_backward

    @property
    def has_device(self) -> bool:
        """Return whether steps are timed by a device's clock."""
        return self._device is not None

    def mark(self) -> Mark | None:
        """Mark the calling thread's place in the device's queue; None outside a step."""
        step = self._current
        if step is None or self._device is None or not step.awaited:  # it began before the device was used
            return None
        mark = self._device.mark()
        step.marks.append(mark)
        return mark

    def collective_on_device(self, arrival: Arrival, what: What, went: Mark, blocked_since: Mark | None = None) -> None:
        """Note that a collective ends where the device passes `went`.

        `blocked_since` is the mark from which its queue stood still for it, if it did; a queue other than that in which
        the step began runs concurrently with the training's work, and what of it the step waits for is not seen.
        """
        if step := self._waiting_step():
            is_of_the_loop = went.queue == step.marks[0].queue
            self.has_seen_waits |= is_of_the_loop
            since = blocked_since if is_of_the_loop else None
            step.awaited.append((went, partial(Step.see_end, arrival=arrival, blocked_since=since)))
        with self._lock:
            arrival.went = went
            arrival.size_bytes, arrival.operation, arrival.group = what
            if arrival.number is not None:  # its step is settled already
                self._late.append(arrival)

    def _note(self, step: Step, happened: Happened) -> Mark | None:
        """Note in the step that this happens now, or on a device, when it passes this mark."""
        if self._device is None:
            happened(step, time.perf_counter_ns())
            return None
        mark = self.mark() if step is self._current else None
        if mark:
            step.awaited.append((mark, happened))
        else:
            self._note_at(step, time.perf_counter_ns(), happened)
        return mark

    def _note_at(self, step: Step, now: int, happened: Happened) -> None:
        """Note in the step an event on the host, whatever the device does."""
        if step.awaited:
            step.awaited.append((Mark(now), happened))
        else:
            happened(step, now)

    def record(self, name: str, value: float) -> None:
        """Record a value of this step, or of the next one when none runs; one that is not finite is kept as unknown."""
        row = (time.time_ns(), self.rank, self._next_number, name, value if isfinite(value) else None)
        with self._lock:
            self._rows[PROGRESS.name].append(row)

    def on_close(self, undo: Callable[[], None]) -> None:
        """Do something once, when the run is over."""
        self._undo.append(undo)

    def settle(self) -> None:
        """Make rows of the steps that have ended; a collective that has not ended yet gets its row when it does."""
        steps = list(takewhile(lambda step: step.is_reached, self._ended))
        stops = self.stops.since(steps[0].begin) if steps and not self._device else []
        with self._lock:
            for step in steps:
                step.replay()
                self._rows[STEP.name].append(step_row(step, self.rank, stops))
                self._late += [arrival for arrival in numbered(step) if arrival.operation is not None]
            waiting: list[Arrival] = []
            for arrival in self._late:
                if arrival.settle_end():
                    self._rows[COLLECTIVE.name].append(collective_row(arrival, self.rank))
                else:
                    waiting.append(arrival)
            self._late = waiting
        del self._ended[: len(steps)]

    def finish_device(self, seconds: float) -> None:
        """Wait for the device to pass all marks, no longer than that."""
        if self._device:
            self._device.drain(seconds)

    @contextmanager
    def taking(self, metric_set: MetricSet) -> Iterator[Columns]:
        """Yield the set's rows until now, by column, without run_id; they are kept here when the block raises."""
        rows = self._rows[metric_set.name]
        with self._lock:
            taken = rows[:]
        yield _by_column(metric_set, taken)
        with self._lock:
            del rows[: len(taken)]

    def make_room(self) -> None:
        """Drop the oldest rows when nobody takes them, so that memory stays bounded."""
        with self._lock:
            for rows in self._rows.values():
                excess = len(rows) - BUFFERED_ROWS
                if excess > 0:
                    del rows[:excess]
                    self.dropped_rows += excess

    def close(self) -> int:
        """Drop everything. Return how many rows were never taken."""
        self.abandon_step()
        self._usage.close()
        self.stops.close()
        while self._undo:
            self._undo.pop()()
        self.watched.clear()
        with self._lock:
            left = len(self._late) + sum(len(rows) for rows in self._rows.values())
            self._late.clear()
            for rows in self._rows.values():
                rows.clear()
        return self.dropped_rows + left


def _by_column(metric_set: MetricSet, rows: list[Row]) -> Columns:
    if not rows:
        return {}
    names = (column.name for column in metric_set.columns if column.name != "run_id")
    return {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
