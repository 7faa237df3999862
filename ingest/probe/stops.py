"""Stops of the whole process: by a signal, frozen with its control group, or paused with its machine.

A napping thread then wakes late without having waited for a core. There is no other sign for a rank in a collective:
it seems to wait for the others, as they do for it.
"""

import threading
import time
from collections import deque

from crosswind.ingest.probe.thread_usage import ThreadUsageReader, usage_of

NAP_SECONDS = 0.2  # shorter stops are sometimes seen; waking costs some 75 us, mostly for cold caches
LEAST_NS = 50_000_000  # without a stop a thread may wake this late, when the interpreter is held
NS = 1_000_000_000
KEPT = 100

Stop = tuple[int, int]  # begin and end, `perf_counter_ns`; the begin is known to half a nap


class Stops:
    """Naps for the calling thread, and notes when it was kept from waking."""

    def __init__(self) -> None:
        self._usage = ThreadUsageReader()
        self._waited = 0  # for a core, at the last look, ns
        self._found: deque[Stop] = deque(maxlen=KEPT)

    def follow(self, thread: int | None) -> None:
        """Follow this napping thread, by the kernel's number; call it before the user's code can close any file."""
        self._usage.follow(thread)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait as `event.wait` does, in naps."""
        self._waited = self._run_queue_wait()
        until = time.perf_counter_ns() + int(seconds * NS)
        while (left := until - time.perf_counter_ns()) > 0:
            if self._nap(event, min(left, int(NAP_SECONDS * NS))):
                return True
        return event.is_set()

    def since(self, begin: int) -> list[Stop]:
        """Return the stops that ended after `begin`."""
        return [stop for stop in self._found if stop[1] > begin]

    def close(self) -> None:
        """Close the file."""
        self._usage.close()

    def _nap(self, event: threading.Event, length: int) -> bool:
        due = time.perf_counter_ns() + length
        is_set = event.wait(length / NS)
        now = time.perf_counter_ns()
        if now - due > LEAST_NS:
            waited, self._waited = self._waited, self._run_queue_wait()
            self.note(due - length // 2 + self._waited - waited, now)
        return is_set

    def note(self, begin: int, end: int) -> None:
        """Note that the process stood still from `begin` to `end`, if that is long enough."""
        if end - begin > LEAST_NS:
            self._found.append((begin, end))

    def _run_queue_wait(self) -> int:
        return usage_of(self._usage.read()).run_queue_wait_ns or 0
