"""The agent: one process a node that sweeps the collectors at aligned instants into the spool.

It needs no root. A source that fails is written down as down, with the reason; it is never a silent gap or a zero.
"""

import fcntl
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from crosswind.data.errors import ConflictError, InvalidInputError, MalformedError, UnavailableError
from crosswind.ingest.collectors import node_collectors, plugged_in_collectors
from crosswind.ingest.probe.place import node_name
from crosswind.ingest.procfs import read_file
from crosswind.ingest.registration import announced
from crosswind.ingest.spool import SpoolWriter, recover
from crosswind.ingest.sweep import NANOSECONDS, Sweep

LOG = logging.getLogger("crosswind.agent")
INTERVAL_SECONDS = (0.01, 3600.0)  # shorter, the agent would disturb what it watches
FLUSH_SECONDS = 1.0  # what a power failure may cost; kill -9 costs nothing that was appended
SEGMENT_SECONDS = 60.0  # how long samples may wait before they can be shipped


@dataclass(frozen=True)
class AgentSettings:
    """Where the agent reads and writes, how often, and for which node."""

    spool: Path
    interval_seconds: float = 1.0
    run_directory: Path | None = None  # where ranks announce themselves; without it no process is watched
    node: str = ""  # this node's name when empty
    proc: Path = Path("/proc")

    def __post_init__(self) -> None:
        shortest, longest = INTERVAL_SECONDS
        if not shortest <= self.interval_seconds <= longest:
            raise InvalidInputError(f"interval {self.interval_seconds} s: expected {shortest} to {longest} s")


class Agent:
    """Sweeps at multiples of the interval since the epoch, so that all nodes sample at the same instants."""

    def __init__(self, sweep: Sweep, spool: SpoolWriter, *, interval_seconds: float, report: str | None = None) -> None:
        self.missed_ticks = 0
        self.lost_sweeps = 0
        self._sweep = sweep
        self._spool = spool
        self._interval_ns = round(interval_seconds * NANOSECONDS)
        self._report = report
        self._flushed = time.monotonic()

    def run(self, stop: threading.Event) -> None:
        """Sweeps at every tick until `stop` is set, and then once more.

        A tick that comes while an earlier sweep still runs is missed and counted, never caught up.
        """
        tick = time.time_ns() // self._interval_ns
        while True:
            tick = self._next_tick(tick)
            due_ns = tick * self._interval_ns
            if stop.wait(max(0, due_ns - time.time_ns()) / NANOSECONDS):
                break
            self.sweep(lateness_seconds=max(0, time.time_ns() - due_ns) / NANOSECONDS)
        self.sweep()

    def sweep(self, *, lateness_seconds: float | None = None) -> None:
        """Reads every collector once; a sweep that the spool cannot take is counted as lost."""
        loop = {
            "reason": self._report,
            "lateness_seconds": lateness_seconds,
            "missed_ticks_total": self.missed_ticks,
            "lost_sweeps_total": self.lost_sweeps,
        }
        try:
            self._sweep.take(loop)
            self._report = None
            self._flush()
        except UnavailableError as error:
            self.lost_sweeps += 1
            LOG.error("sweep lost: %s", error)

    def _next_tick(self, last: int) -> int:
        now = time.time_ns() // self._interval_ns
        if now < last - 1:  # the clock was set back: go on from where it stands
            return now + 1
        tick = max(now, last) + 1
        self.missed_ticks += tick - last - 1
        return tick

    def _flush(self) -> None:
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self._spool.flush()
            self._flushed = time.monotonic()


def run_agent(settings: AgentSettings, stop: threading.Event) -> None:
    """Samples this node until `stop` is set, then takes a last sweep and seals it.

    Raises: ConflictError when another agent writes into the spool; UnavailableError when the spool cannot be written.
    """
    with _started(settings) as agent:
        agent.run(stop)


def sweep_once(settings: AgentSettings) -> None:
    """Takes one sweep of this node and seals it. Raises: as `run_agent`."""
    with _started(settings) as agent:
        agent.sweep()


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set; to be called from the main thread."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a signal handler
        # The handler may interrupt the very code that holds the event's lock; another thread can wait for it.
        threading.Thread(target=stop.set).start()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
    return stop


@contextmanager
def _started(settings: AgentSettings) -> Iterator[Agent]:
    node = settings.node or node_name()
    with _alone_in(settings.spool), _writer(settings.spool, node) as spool:
        report = _recovered(settings.spool)
        yield Agent(_sweep(settings, spool, node), spool, interval_seconds=settings.interval_seconds, report=report)


def _writer(directory: Path, node: str) -> SpoolWriter:
    origin = "agent." + re.sub(r"[^A-Za-z0-9._-]", "_", node)[:90]
    return SpoolWriter(directory, origin, segment_seconds=SEGMENT_SECONDS)


def _sweep(settings: AgentSettings, spool: SpoolWriter, node: str) -> Sweep:
    collectors = node_collectors(settings.proc, pids=lambda: _watched_pids(settings))
    others, refused = plugged_in_collectors(collector.metric_set.name for collector in collectors)
    for status in refused:
        LOG.warning("collector %s cannot be used: %s", status.name, status.reason)
    sweep = Sweep([*collectors, *others], spool, node=node, boot_id=_boot_id(settings.proc))
    sweep.refuse(refused)
    return sweep


def _watched_pids(settings: AgentSettings) -> list[int]:
    if settings.run_directory is None:
        return []
    return [rank.pid for rank in announced(settings.run_directory, settings.proc).ranks]


def _boot_id(proc: Path) -> str | None:
    try:
        return read_file(f"{proc}/sys/kernel/random/boot_id").decode("ascii").strip() or None
    except (UnavailableError, MalformedError, UnicodeDecodeError):
        return None


def _recovered(directory: Path) -> str | None:
    """What dead writers had left in the spool, as one line."""
    reports = recover(directory)
    for report in reports:
        LOG.warning("recovered %s: %d frames, %d torn bytes", report.path, report.frames, report.torn_bytes)
    torn_bytes = sum(report.torn_bytes for report in reports)
    return f"recovered {len(reports)} segments of dead writers, {torn_bytes} torn bytes cut" if reports else None


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Holds the lock of the spool directory's one agent; the kernel lets go of it when the process dies."""
    path = directory / "agent.lock"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o640)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    try:
        _lock(fd, directory)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, directory: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
        raise ConflictError(
            f"spool {directory}: the agent with pid {holder} writes there; stop it or name another directory"
        ) from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
