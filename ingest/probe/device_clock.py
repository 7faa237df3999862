"""A device's clock: the times, by the host's clock, at which a device passed marks in its queue.

The loop's thread only puts events into the queue and queries, without waiting, whether they were passed: training is
never synchronised. An event's time is that of an anchor before it plus the time between both; an anchor is an event in
an otherwise empty queue, so that it is passed at once, and its time is the host's.
Source: CUDA C programming guide, "Events"; cudaEventElapsedTime (resolution of half a microsecond; a float of ms, so
that anchors are renewed before its digits run out, and before both clocks drift apart).
"""

import logging
import threading
import time
from collections import deque
from typing import Any, Final, Protocol, Self

from crosswind.data.schema.errors import UnavailableError

ANCHORED_AGAIN_NS: Final = 1_000_000_000
PATIENCE_NS: Final = 200_000  # for an anchor: if all queues are one, it is behind the training's work
FIRST_TRIES: Final = 50
LOOKED_AT: Final = 1000  # marks not yet queried, when the end of a step is far
POLL_SECONDS: Final = 0.001
logger = logging.getLogger("crosswind")


class Event(Protocol):
    """A place in a queue, as `torch.cuda.Event` with timing."""

    def query(self) -> bool:
        """Return whether the device has passed it; never waits."""
        ...

    def elapsed_time(self, end_event: Self) -> float:
        """Return milliseconds from this one to a later one; both were passed."""
        ...


Anchor = tuple[Event, int]  # and when it was passed


class Events(Protocol):
    """The source of events."""

    def are_refused(self) -> bool:
        """Return whether the calling thread's queue is recorded for replay, which events and queries would disturb."""
        ...

    def record(self) -> tuple[Event, int]:
        """Record an event in the calling thread's present queue. Return it and the queue's id."""
        ...

    def record_aside(self) -> Event:
        """Record an event in a queue in which nothing else is."""
        ...

    def give_back(self, event: Any) -> None:
        """Take an event back for reuse."""
        ...


class Mark:
    """A place in a queue; `put_ns` is when it was put there, `ns` when the device passed it, once that is known."""

    __slots__ = ("anchor", "event", "ns", "put_ns", "queue")

    def __init__(self, put_ns: int) -> None:
        self.put_ns = put_ns
        self.ns: int | None = put_ns  # as long as it has no event
        self.queue = 0
        self.event: Event | None = None
        self.anchor: Anchor | None = None

    def put(self, event: Event, queue: int, anchor: Anchor | None) -> None:
        """Hold the event from now on."""
        self.event, self.queue, self.anchor, self.ns = event, queue, anchor, None


class DeviceClock:
    """Marks of one device, from any thread of the rank. Nothing here raises once it is made."""

    def __init__(self, events: Events) -> None:
        """Raises: UnavailableError when the device passes no event at once although it has nothing else to do."""
        self._events = events
        self._pending: deque[Mark] = deque()
        self._looking = threading.Lock()
        self._is_lost = False
        self._anchor: Anchor | None = None
        self._anchored = 0
        self._passed: Anchor | None = None  # the mark that was passed last
        self._last: dict[int, int] = {}  # by queue, the last time at which it was passed
        for _ in range(FIRST_TRIES):
            if self._anchor is None:
                self._take_anchor()
        if self._anchor is None:
            raise UnavailableError(f"an idle device passed no event within {PATIENCE_NS / 1000:.0f} us")

    def mark(self) -> Mark:
        """Mark the place in the present queue."""
        mark = Mark(time.perf_counter_ns())
        try:
            if not self._is_lost and not self._events.are_refused():
                mark.put(*self._events.record(), self._anchor)
                self._pending.append(mark)
        except Exception as error:  # noqa: BLE001 - the next call may report any failure on the device
            self._lose(error)
            mark.ns = mark.put_ns
        if len(self._pending) > LOOKED_AT:
            self.look()
        return mark

    def look(self) -> None:
        """Note the times of marks passed since the last look, and take an anchor from time to time."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            if not self._is_lost and not self._events.are_refused():
                self._look()
        except Exception as error:  # noqa: BLE001 - as above
            self._lose(error)
        finally:
            self._looking.release()

    def drain(self, seconds: float) -> None:
        """Wait until everything is passed, no longer than that; the rest gets the host's times."""
        until = time.monotonic() + seconds
        self.look()
        while self._pending and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
            self.look()
        self._let_go()

    def _look(self) -> None:
        while self._pending and self._is_passed(self._pending[0]):
            self._pending.popleft()
        if time.perf_counter_ns() - self._anchored > ANCHORED_AGAIN_NS and not self._take_anchor() and self._passed:
            self._anchor, self._passed = self._passed, None  # the same clock, its digits fresh

    def _is_passed(self, mark: Mark) -> bool:
        if mark.event is None or mark.anchor is None:
            return True
        if not mark.event.query():
            return False
        event, anchored = mark.anchor
        self._settle(mark, anchored + round(1e6 * event.elapsed_time(mark.event)))
        if self._passed:
            self._events.give_back(self._passed[0])
        self._passed = mark.event, mark.ns or mark.put_ns
        mark.event = mark.anchor = None
        return True

    def _take_anchor(self) -> bool:
        before = self._anchored = time.perf_counter_ns()
        event = self._events.record_aside()
        while (now := time.perf_counter_ns()) - before < PATIENCE_NS:
            if event.query():
                self._anchor = event, self._time_of_anchor(event, before, now)
                return True
        return False

    def _time_of_anchor(self, event: Event, before: int, now: int) -> int:
        """Return the time by the last anchor, so that times do not jump back and forth; else the middle of the span."""
        if self._anchor:
            last, anchored = self._anchor
            expected = anchored + round(1e6 * last.elapsed_time(event))
            if before <= expected <= now:
                return expected
        return (before + now) // 2

    def _settle(self, mark: Mark, ns: int) -> None:
        """Settle marks in the order of their queue, even against a new anchor."""
        mark.ns = self._last[mark.queue] = max(ns, self._last.get(mark.queue, ns))

    def _lose(self, error: Exception) -> None:
        if not self._is_lost:
            logger.warning("crosswind continues with the host's clock, the device's is lost: %s", error)
        self._is_lost = True
        self._let_go()

    def _let_go(self) -> None:
        while True:
            try:
                mark = self._pending.popleft()
            except IndexError:
                return
            self._settle(mark, mark.put_ns)
