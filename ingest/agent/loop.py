"""The agent's loop: a sweep at every tick, jobs and ranks in between, and counters of the loop itself."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from crosswind.data.schema.metric import with_node_keys
from crosswind.ingest.agent.reading import NANOSECONDS
from crosswind.ingest.agent.self_metrics import AGENT, SelfMetrics, Tally
from crosswind.ingest.agent.sweep import Sweep
from crosswind.ingest.agent.trouble import Trouble
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.occupancy.occupancy import Occupancy
from crosswind.ingest.ship.shipped import Shipped
from crosswind.ingest.spool.spool import SpoolWriter, SweepRows

LOG = logging.getLogger("crosswind.agent")
FLUSH_SECONDS = 1.0  # what a power failure may cost; kill -9 costs nothing that was appended
LOOK_SECONDS = 2.0  # between looks at whether jobs and ranks came or went
MEASURE_SECONDS = 60.0  # between looks at the spool's size: segments are sealed once a minute, and may be thousands


class Agent:
    """Sweeps at multiples of the interval since the epoch, so that all nodes sample at the same instants."""

    def __init__(
        self,
        sweep: Sweep,
        spool: SpoolWriter,
        *,
        interval_seconds: float,
        occupancy: Occupancy | None = None,
        shipped: Callable[[], Shipped | None] = lambda: None,
    ) -> None:
        self.sweeper = sweep
        self.tally = Tally()
        self.report: str | None = None  # a message for the next sweep
        self.sweeps = 0
        self._losing_sweeps = Trouble(LOG, "sweeps are lost", "sweeps are kept again; %d were lost")
        self._records_waiting = Trouble(
            LOG, "records of jobs and ranks wait", "records of jobs and ranks are kept again, after %d attempts"
        )
        self._spool = spool
        self._interval_ns = round(interval_seconds * NANOSECONDS)
        self._occupancy = occupancy
        self._shipped = shipped
        self.last_answers_seconds = 2.0  # for which the end waits for slow sources
        self._flushed = time.monotonic()
        self._looked = self._measured = float("-inf")
        self._own = SelfMetrics(KernelFiles())
        self._own_set = with_node_keys(AGENT)

    def run(self, stop: threading.Event, at_tick: Callable[[], None] = lambda: None) -> None:
        """Sweep at every tick until `stop` is set, and then once more; `at_tick` runs after every sweep.

        A tick that comes while an earlier sweep still runs is missed and counted, never caught up.
        """
        due_ns = time.time_ns()
        while True:
            due_ns = self._next_tick(due_ns // self._interval_ns) * self._interval_ns
            if stop.wait(min(max(0, due_ns - time.time_ns()), 2 * self._interval_ns) / NANOSECONDS):
                break
            if due_ns - time.time_ns() > self._interval_ns:  # the clock was set back meanwhile
                continue
            self.sweep(due_ns, lateness_seconds=max(0, time.time_ns() - due_ns) / NANOSECONDS)
            at_tick()
        self.sweep()
        self.finish()

    def renew(self, sweep: Sweep, interval_seconds: float) -> None:
        """Continue with other sources, and at another pace."""
        self.finish(0.0)
        self.sweeper = sweep
        self._interval_ns = round(interval_seconds * NANOSECONDS)

    def sweep(self, tick_ns: int | None = None, *, lateness_seconds: float | None = None) -> None:
        """Read every source that is due once; a sweep that the spool cannot take is counted as lost."""
        begin = time.perf_counter()
        self.sweeps += 1
        self._look()
        self._measure_spool()

        def own() -> Iterable[SweepRows]:
            yield self._own_row(lateness_seconds, time.perf_counter() - begin)

        with self._counting_losses():
            self.sweeper.take(time.time_ns() if tick_ns is None else tick_ns, own)
            self.report = None
            self._flush()

    def finish(self, timeout_seconds: float | None = None) -> None:
        """Take the late readings of slow sources, and the final state of jobs and ranks."""
        self._look(now=True)
        with self._counting_losses():
            self.sweeper.finish(self.last_answers_seconds if timeout_seconds is None else timeout_seconds)

    @contextmanager
    def _counting_losses(self) -> Iterator[None]:
        with self._losing_sweeps.caught():
            yield
        self.tally.lost_sweeps_total = self._losing_sweeps.times

    def _measure_spool(self) -> None:
        if time.monotonic() - self._measured >= MEASURE_SECONDS:
            self._measured = time.monotonic()
            self._own.spool_bytes = self._spool.waiting_bytes()

    def _own_row(self, lateness_seconds: float | None, sweep_seconds: float) -> SweepRows:
        self.tally.dropped_segments_total = self._spool.dropped_segments
        self.tally.dropped_rows_total = self.sweeper.dropped_rows
        row = self._own.row(
            self.tally,
            self._shipped(),
            lateness_seconds=lateness_seconds,
            sweep_seconds=sweep_seconds,
            report=self.report,
        )
        return self.sweeper.keyed(self._own_set, [row])

    def _look(self, *, now: bool = False) -> None:
        """Look every few seconds which jobs and ranks are here, and record the changes."""
        if self._occupancy is None or not (now or time.monotonic() - self._looked >= LOOK_SECONDS):
            return
        self._looked = time.monotonic()
        self._occupancy.look(now=now)
        with self._records_waiting.caught():
            self._occupancy.hand_to(self._spool.append_record)

    def _next_tick(self, last: int) -> int:
        now = time.time_ns() // self._interval_ns
        if now < last - 1:  # the clock was set back: go on from there
            return now + 1
        tick = max(now, last) + 1
        self.tally.missed_ticks_total += tick - last - 1
        return tick

    def _flush(self) -> None:
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self._spool.flush()
            self._flushed = time.monotonic()
