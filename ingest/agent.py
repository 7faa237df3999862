"""The agent: one process a node that sweeps its sources at aligned instants into the spool.

It needs no root. A source that fails is written down as down, with the reason; it is never a silent gap or a zero.
"""

import fcntl
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from crosswind.data.errors import ConflictError, InvalidInputError, MalformedError, ProjectError, UnavailableError
from crosswind.ingest.agent_settings import AgentSettings
from crosswind.ingest.collectors import SOURCES, made, plugged_in_sources
from crosswind.ingest.collectors.source import Host, Source
from crosswind.ingest.kernel_files import KernelFiles
from crosswind.ingest.probe.place import node_name
from crosswind.ingest.procfs import read_file
from crosswind.ingest.reading import NANOSECONDS
from crosswind.ingest.registration import announced
from crosswind.ingest.self_metrics import AGENT, SelfMetrics, Tally
from crosswind.ingest.spool import SpoolWriter, SweepRows, recover
from crosswind.ingest.sweep import Sweep, TimedSource, timed, with_node_keys

LOG = logging.getLogger("crosswind.agent")
FLUSH_SECONDS = 1.0  # what a power failure may cost; kill -9 costs nothing that was appended
LAST_ANSWERS_SECONDS = 2.0  # how long the end waits for slow sources


class Agent:
    """Sweeps at multiples of the interval since the epoch, so that all nodes sample at the same instants."""

    def __init__(self, sweep: Sweep, spool: SpoolWriter, *, interval_seconds: float, report: str | None = None) -> None:
        self.sweeper = sweep
        self.tally = Tally()
        self._spool = spool
        self._interval_ns = round(interval_seconds * NANOSECONDS)
        self.report = report
        self._flushed = time.monotonic()
        self._own = SelfMetrics(KernelFiles())
        self._own_set = with_node_keys(AGENT)

    def run(self, stop: threading.Event, at_tick: Callable[[], None] = lambda: None) -> None:
        """Sweeps at every tick until `stop` is set, and then once more; `at_tick` runs behind every sweep.

        A tick that comes while an earlier sweep still runs is missed and counted, never caught up.
        """
        due_ns = time.time_ns()
        while True:
            due_ns = self._next_tick(due_ns // self._interval_ns) * self._interval_ns
            if stop.wait(max(0, due_ns - time.time_ns()) / NANOSECONDS):
                break
            self.sweep(due_ns, lateness_seconds=max(0, time.time_ns() - due_ns) / NANOSECONDS)
            at_tick()
        self.sweep()
        self.finish()

    def renew(self, sweep: Sweep, interval_seconds: float) -> None:
        """Goes on with other sources, and at another pace."""
        self.finish(0.0)
        self.sweeper = sweep
        self._interval_ns = round(interval_seconds * NANOSECONDS)
        self.report = "settings read again"

    def sweep(self, tick_ns: int | None = None, *, lateness_seconds: float | None = None) -> None:
        """Reads every source that is due once; a sweep that the spool cannot take is counted as lost."""
        begin = time.perf_counter()

        def own() -> Iterable[SweepRows]:
            yield self._own_row(lateness_seconds, time.perf_counter() - begin)

        with self._counting_losses():
            self.sweeper.take(time.time_ns() if tick_ns is None else tick_ns, own)
            self.report = None
            self._flush()

    def finish(self, timeout_seconds: float = LAST_ANSWERS_SECONDS) -> None:
        """Takes in what slow sources have still to say."""
        with self._counting_losses():
            self.sweeper.finish(timeout_seconds)

    @contextmanager
    def _counting_losses(self) -> Iterator[None]:
        try:
            yield
        except UnavailableError as error:
            self.tally.lost_sweeps_total += 1
            LOG.error("sweep lost: %s", error)

    def _own_row(self, lateness_seconds: float | None, sweep_seconds: float) -> SweepRows:
        self.tally.dropped_segments_total = self._spool.dropped_segments
        self.tally.dropped_rows_total = self.sweeper.dropped_rows
        row = self._own.row(
            self.tally, lateness_seconds=lateness_seconds, sweep_seconds=sweep_seconds, report=self.report
        )
        return self.sweeper.keyed(self._own_set, [row])

    def _next_tick(self, last: int) -> int:
        now = time.time_ns() // self._interval_ns
        if now < last - 1:  # the clock was set back: go on from where it stands
            return now + 1
        tick = max(now, last) + 1
        self.tally.missed_ticks_total += tick - last - 1
        return tick

    def _flush(self) -> None:
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self._spool.flush()
            self._flushed = time.monotonic()


@dataclass(frozen=True)
class Reload:
    """How to notice that the settings may have changed, and where they then stand."""

    wanted: threading.Event
    read: Callable[[], AgentSettings]


def run_agent(settings: AgentSettings, stop: threading.Event, reload: Reload | None = None) -> None:
    """Samples this node until `stop` is set, then takes a last sweep and seals it.

    Settings that are read again apply to interval and sources; wrong ones change nothing, and are told.
    Raises: ConflictError when another agent writes into the spool; UnavailableError when the spool cannot be written;
    InvalidInputError for settings that make no sense.
    """
    with _started(settings) as (agent, spool):

        def at_tick() -> None:
            if reload is not None and reload.wanted.is_set():
                reload.wanted.clear()
                _renew(agent, spool, reload)

        agent.run(stop, at_tick)


def sweep_once(settings: AgentSettings) -> None:
    """Takes one sweep of this node and seals it. Raises: as `run_agent`."""
    with _started(settings) as (agent, _):
        agent.sweep()
        agent.finish()


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set; to be called from the main thread."""
    return _event_of(signal.SIGTERM, signal.SIGINT)


def reload_on_hangup() -> threading.Event:
    """An event that SIGHUP sets; to be called from the main thread."""
    return _event_of(signal.SIGHUP)


def _event_of(*signals: signal.Signals) -> threading.Event:
    event = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a signal handler
        # The handler may interrupt the very code that holds the event's lock; another thread can wait for it.
        threading.Thread(target=event.set).start()

    for each in signals:
        signal.signal(each, handle)
    return event


@contextmanager
def _started(settings: AgentSettings) -> Iterator[tuple[Agent, SpoolWriter]]:
    with _alone_in(settings.spool), _writer(settings) as spool:
        report = _recovered(settings.spool)
        yield Agent(_sweep(settings, spool), spool, interval_seconds=settings.interval_seconds, report=report), spool


def _writer(settings: AgentSettings) -> SpoolWriter:
    origin = "agent." + re.sub(r"[^A-Za-z0-9._-]", "_", settings.node or node_name())[:90]
    return SpoolWriter(
        settings.spool, origin, segment_seconds=settings.segment_seconds, directory_bytes=settings.spool_bytes
    )


def _renew(agent: Agent, spool: SpoolWriter, reload: Reload) -> None:
    try:
        settings = reload.read()
        agent.renew(_sweep(settings, spool), settings.interval_seconds)
    except ProjectError as error:
        LOG.error("settings left as they were: %s", error)
        agent.report = f"settings left as they were: {error}"[:500]


def _sweep(settings: AgentSettings, spool: SpoolWriter) -> Sweep:
    """The sources that the settings ask for. Raises: InvalidInputError for settings that make no sense."""
    others, refused = plugged_in_sources(source.name for source in SOURCES)
    known = {source.name: source for source in (*SOURCES, *others)}
    if unknown := sorted(settings.sources.keys() - known):
        raise InvalidInputError(f"sources.{unknown[0]}: unknown; expected one of {', '.join(known)}")
    for status in refused:
        LOG.warning("source %s cannot be used: %s", status.name, status.reason)
    host = Host(settings.root, pids=lambda: _watched_pids(settings))
    sources = [_source(source, settings, host) for source in known.values() if settings.is_enabled(source)]
    sweep = Sweep(sources, spool, node=settings.node or node_name(), boot_id=_boot_id(host.proc))
    sweep.refuse(refused)
    return sweep


def _source(source: Source, settings: AgentSettings, host: Host) -> TimedSource:
    source = settings.paced(source)
    if source.timeout_seconds is not None:  # its thread has descriptors of its own
        host = replace(host, files=KernelFiles())
    return timed(made(source, host, settings.options(source)), source)


def _watched_pids(settings: AgentSettings) -> list[int]:
    if settings.run_directory is None:
        return []
    return [rank.pid for rank in announced(settings.run_directory, settings.root / "proc").ranks]


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
