"""The agent: one process a node that sweeps its sources at aligned instants into the spool, and ships it.

It needs no root. A source that fails is recorded as down, with the reason: never a silent gap, never a zero.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from crosswind.data.files import lock_file, take_lock
from crosswind.data.schema.errors import ConflictError, MalformedError, ProjectError, UnavailableError
from crosswind.ingest.agent.loop import Agent
from crosswind.ingest.agent.reading import Reader
from crosswind.ingest.agent.settings import AgentSettings
from crosswind.ingest.agent.sources import known_sources
from crosswind.ingest.agent.sweep import Sweep, TimedSource, timed
from crosswind.ingest.collectors import made
from crosswind.ingest.collectors.source import Host, Source
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.procfs import read_file
from crosswind.ingest.occupancy.occupancy import Occupancy
from crosswind.ingest.probe.place import node_name
from crosswind.ingest.ship.shipped import Shipped
from crosswind.ingest.ship.token import ship_token
from crosswind.ingest.spool.abandoned import agent_origin, is_abandoned_in
from crosswind.ingest.spool.spool import SpoolWriter, recover, sealed_segments

LOG = logging.getLogger("crosswind.agent")
LAST_SHIPMENT_SECONDS = 5.0  # what the end allows the last shipments
AT_START = (
    "spool",
    "run_directory",
    "job_directory",
    "node",
    "root",
    "segment_seconds",
    "spool_bytes",
    "ship",
    "metrics",
)


@dataclass(frozen=True)
class _Running:
    """A running agent, with what its sources are made from."""

    settings: AgentSettings
    agent: Agent
    spool: SpoolWriter
    occupancy: Occupancy


@dataclass(frozen=True)
class Reload:
    """A notice that the settings may have changed, and the function that reads them again."""

    wanted: threading.Event
    read: Callable[[], AgentSettings]


def run_agent(settings: AgentSettings, stop: threading.Event, reload: Reload | None = None) -> None:
    """Samples this node until `stop` is set, then takes a last sweep and seals it.

    Settings that are read again apply to interval and sources; invalid ones change nothing, and are reported.
    Raises: ConflictError when another agent writes into the spool; UnavailableError when the spool cannot be written;
    InvalidInputError for settings that make no sense.
    """
    with _started(settings) as running:

        def at_tick() -> None:
            if reload is not None and reload.wanted.is_set():
                reload.wanted.clear()
                _renew(running, reload)

        LOG.info("node %s: a sweep every %g s into %s", _node(settings), settings.interval_seconds, settings.spool)
        begin, used = time.monotonic(), time.process_time()
        running.agent.run(stop, at_tick)
        _log_end(running.agent, time.monotonic() - begin, time.process_time() - used)


def _log_end(agent: Agent, seconds: float, cpu_seconds: float) -> None:
    tally, up = agent.tally, agent.sweeper.up()
    share = cpu_seconds / max(seconds, 1e-9)
    LOG.info(
        "%d sweeps in %.0f s: %d ticks missed, %d sweeps lost, %.2f %% of a core; %d sources: %s",
        *(agent.sweeps, seconds, tally.missed_ticks_total, tally.lost_sweeps_total, 100 * share),
        *(len(up), ", ".join(up)),
    )


def sweep_once(settings: AgentSettings) -> None:
    """Takes one sweep of this node and seals it. Raises: as `run_agent`."""
    with _started(settings) as running:
        running.agent.sweep()
        running.agent.finish()


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

    for signum in signals:
        signal.signal(signum, handle)
    return event


@contextmanager
def _started(settings: AgentSettings) -> Iterator[_Running]:
    with _alone_in(settings.spool), ExitStack() as stack:
        report = _recovered(settings)  # before the shipper begins, who would seal it without a word
        # The writer ends before the shipper, which then sends what was sealed last.
        shipped, spool = stack.enter_context(_shipping(settings)), stack.enter_context(_writer(settings))
        occupancy = Occupancy(
            _node(settings),
            proc=settings.root / "proc",
            run_directory=settings.run_directory,
            job_directory=settings.job_directory,
        )
        agent = Agent(
            _sweep(settings, spool, occupancy),
            spool,
            interval_seconds=settings.interval_seconds,
            occupancy=occupancy,
            shipped=shipped,
        )
        agent.report = report
        agent.last_answers_seconds = settings.last_answers_seconds
        with _shown(settings, agent), _issuing(settings):
            yield _Running(settings, agent, spool, occupancy)


@contextmanager
def _shown(settings: AgentSettings, agent: Agent) -> Iterator[None]:
    """Serves the last sweep to Prometheus, if the settings say so."""
    if not settings.metrics.listen:
        yield
        return
    from crosswind.ingest.exposition.server import serve  # noqa: PLC0415 - HTTP, needed only where Prometheus scrapes

    name = settings.metrics.token_file
    token = ship_token({"CROSSWIND_TOKEN_FILE": name}) if name else None
    stop = threading.Event()
    thread = serve(settings.metrics.listen, lambda: agent.sweeper.latest, stop, token)
    try:
        yield
    finally:
        stop.set()
        thread.join(LAST_SHIPMENT_SECONDS)


@contextmanager
def _issuing(settings: AgentSettings) -> Iterator[None]:
    """Give the node's jobs their tokens, if the settings say so."""
    if not settings.job_tokens.listen:
        yield
        return
    from crosswind.ingest.agent.job_tokens import JobTokens, serving_tokens  # noqa: PLC0415 - HTTP, seldom needed

    tokens = JobTokens(settings.ship.url, _own_token(settings))
    with serving_tokens(Path(settings.job_tokens.listen), tokens.token_of, settings.root / "proc"):
        yield


def _own_token(settings: AgentSettings) -> str | None:
    """Return the token with which the agent asks its server."""
    name = settings.ship.token_file
    return ship_token({"CROSSWIND_TOKEN_FILE": name} if name else os.environ)


@contextmanager
def _shipping(settings: AgentSettings) -> Iterator[Callable[[], Shipped | None]]:
    """Ship the spool in a thread of its own, if the settings name a server; yield what was shipped so far."""
    if not settings.ship.url:
        yield lambda: None
        return
    from crosswind.ingest.ship.shipper import Shipper  # noqa: PLC0415 - HTTP, needed only where the spool is shipped

    shipper = Shipper(settings.spool, settings.ship.url, _own_token(settings))
    stop = threading.Event()
    thread = threading.Thread(target=shipper.run, args=(stop,), name="shipper", daemon=True)
    thread.start()
    try:
        yield lambda: shipper.shipped
    finally:
        until = time.monotonic() + LAST_SHIPMENT_SECONDS
        while sealed_segments(settings.spool) and shipper.shipped.problem is None and time.monotonic() < until:
            time.sleep(0.05)
        stop.set()
        thread.join(LAST_SHIPMENT_SECONDS)


def _writer(settings: AgentSettings) -> SpoolWriter:
    origin = agent_origin(_node(settings))
    return SpoolWriter(
        settings.spool, origin, segment_seconds=settings.segment_seconds, directory_bytes=settings.spool_bytes
    )


def _renew(running: _Running, reload: Reload) -> None:
    agent, before = running.agent, running.settings
    try:
        requested = reload.read()
        settings = replace(requested, **{name: getattr(before, name) for name in AT_START})
        agent.renew(_sweep(settings, running.spool, running.occupancy, agent.sweeper.hung()), settings.interval_seconds)
    except ProjectError as error:
        LOG.error("settings left as they were: %s", error)
        agent.report = f"settings left as they were: {error}"[:500]
        return
    later = [name for name in AT_START if getattr(requested, name) != getattr(before, name)]
    agent.report = "settings read again" + (f"; a restart is needed for {', '.join(later)}" if later else "")
    LOG.info("%s", agent.report)


def _sweep(
    settings: AgentSettings, spool: SpoolWriter, occupancy: Occupancy, hung: Mapping[str, Reader] | None = None
) -> Sweep:
    """The sources that the settings ask for. Raises: InvalidInputError for settings that make no sense."""
    available, refused = known_sources(settings)
    for refusal in refused:
        LOG.warning("source %s cannot be used: %s", refusal.name, refusal.reason)
    host = Host(settings.root, occupancy.pids, occupancy)
    readers = hung or {}
    sources = [
        _source(source, settings, host, readers.get(source.name)) for source in available if settings.is_enabled(source)
    ]
    sweep = Sweep(sources, spool, node=_node(settings), boot_id=_boot_id(host.proc))
    sweep.refuse(refused)
    return sweep


def _source(source: Source, settings: AgentSettings, host: Host, hung: Reader | None) -> TimedSource:
    if source.timeout_seconds is not None:  # its thread has descriptors of its own
        host = replace(host, files=KernelFiles())
    return timed(made(source, host, settings.options(source)), source, hung)


def _node(settings: AgentSettings) -> str:
    return settings.node or node_name()


def _boot_id(proc: Path) -> str | None:
    try:
        return read_file(f"{proc}/sys/kernel/random/boot_id").decode("ascii").strip() or None
    except (UnavailableError, MalformedError, UnicodeDecodeError):
        return None


def _recovered(settings: AgentSettings) -> str | None:
    """Recover what dead writers left in the spool. Return a line about it; writers on other nodes may still live."""
    try:
        reports = recover(settings.spool, is_abandoned_in(settings.spool, _node(settings)))
    except OSError as error:
        raise UnavailableError(f"spool {settings.spool}: {error.strerror or error}") from error
    # One just begun may look like a dead one's.
    reports = [report for report in reports if report.frames or report.torn_bytes]
    for report in reports:
        LOG.warning("recovered %s: %d frames, %d torn bytes", report.path, report.frames, report.torn_bytes)
    torn_bytes = sum(report.torn_bytes for report in reports)
    return f"recovered {len(reports)} segments of dead writers, {torn_bytes} torn bytes cut" if reports else None


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Hold the lock of the spool directory's one agent; the kernel releases it when the process dies."""
    path = directory / "agent.lock"
    with ExitStack() as held:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            fd = held.enter_context(lock_file(path))
        except OSError as error:
            raise UnavailableError(f"{path}: {error.strerror}: name a spool folder of your own (--spool)") from error
        if not take_lock(fd):
            holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            raise ConflictError(
                f"spool {directory}: the agent with pid {holder} writes there; stop it or name another directory"
            )
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        yield
