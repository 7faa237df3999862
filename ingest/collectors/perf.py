"""Performance counters of watched ranks and cores: cycles, instructions, cache and branch misses, faults, switches."""

import errno
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample, Scalar
from crosswind.ingest.collectors.source import Source, no_pids
from crosswind.ingest.kernel.fd_limits import OUT_OF_FILES
from crosswind.ingest.kernel.kernel_files import KernelFiles, OutOfFilesError, share_of_descriptors
from crosswind.ingest.kernel.perf_event import (
    HARDWARE,
    REFUSED,
    SOFTWARE,
    Event,
    Group,
    LinuxPerf,
    PerfKernel,
    Target,
    opened,
)
from crosswind.ingest.kernel.procfs import count, started_ticks

ADVICE = (
    "counting other users' processes and whole cores needs CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8) or "
    "kernel.perf_event_paranoid at 0 or below; a guest without a virtual PMU has the software events alone"
)
OF_KERNEL = ((SOFTWARE, 3), (SOFTWARE, 4), (SOFTWARE, 11))  # switches and migrations


@dataclass(frozen=True)
class _Counted:
    """An event with its column."""

    event: Event
    column: Column


def _counted(place: tuple[int, int], name: str, description: str, unit: str = "") -> _Counted:
    scale = 1e-9 if unit == "seconds" else 1.0
    column = Column(name, description, Kind.COUNTER, "uint64", unit=unit, scale=scale)
    return _Counted(Event(name, *place, is_of_kernel=place in OF_KERNEL), column)


# Groups are small enough for the four counters that a core may have; more groups take turns. They are in the order in
# which descriptors are given to them.
GROUPS = {
    "hardware": (
        _counted((HARDWARE, 0), "cycles_total", "cycles at the core's present frequency", "cycles"),
        _counted((HARDWARE, 1), "instructions_total", "instructions completed"),
        _counted((HARDWARE, 9), "reference_cycles_total", "cycles at a constant frequency", "cycles"),
    ),
    "software": (
        _counted((SOFTWARE, 0), "cpu_clock_seconds_total", "a core's clock while counting", "seconds"),
        _counted((SOFTWARE, 1), "task_clock_seconds_total", "run on a core", "seconds"),
        _counted((SOFTWARE, 5), "minor_page_faults_total", "page faults served from memory"),
        _counted((SOFTWARE, 6), "major_page_faults_total", "page faults that waited for a disk"),
        _counted((SOFTWARE, 3), "context_switches_total", "switches to another task"),
        _counted((SOFTWARE, 4), "migrations_total", "moves to another core"),
        _counted((SOFTWARE, 11), "cgroup_switches_total", "switches to a task of another cgroup"),
        _counted((SOFTWARE, 7), "alignment_faults_total", "accesses that the kernel had to align"),
        _counted((SOFTWARE, 8), "emulation_faults_total", "instructions that the kernel had to emulate"),
    ),
    "cache": (
        _counted((HARDWARE, 2), "cache_references_total", "accesses of the last level of cache, on most machines"),
        _counted((HARDWARE, 3), "cache_misses_total", "of them those that went to memory"),
        _counted((HARDWARE, 4), "branches_total", "branches completed"),
        _counted((HARDWARE, 5), "branch_misses_total", "of them those that were predicted wrongly"),
    ),
}


def _times(group: str) -> tuple[Column, Column]:
    enabled, running = f"{group}_enabled_seconds_total", f"{group}_running_seconds_total"
    return (
        Column(enabled, f"the {group} events were to be counted", Kind.COUNTER, "uint64", "seconds", 1e-9),
        Column(
            running,
            f"the {group} events were counted; value x enabled / running estimates the whole, badly below 0.3",
            *(Kind.COUNTER, "uint64", "seconds", 1e-9),
        ),
    )


NOT_COUNTED = Column("not_counted", "what cannot be counted here, and why", Kind.FACT, "string")
PERF = MetricSet(
    "perf",
    "events of each watched rank (the device is the pid) and of each core (cpu0 ...), as counted, not extrapolated",
    (
        *(counted.column for group in GROUPS.values() for counted in group),
        *(column for group in GROUPS for column in _times(group)),
        Column("began_seconds", "the node's clock when counting began", Kind.EPOCH, unit="seconds", scale=1e-9),
        Column("threads_at_start", "threads that the rank had when counting began"),
        Column("includes_kernel", "what runs in the kernel is counted too", Kind.FACT, "bool"),
        NOT_COUNTED,
    ),
)
EVENTS = sum(len(group) for group in GROUPS.values())


def _descriptors() -> int:
    """Return a quarter of the files that this process may open: kept files take their share, too."""
    return share_of_descriptors(4)


@dataclass
class _Watch:
    """The counters of one device: a group of each name for each thread that it had when counting began."""

    generation: int  # start of the process: a later one of the same pid differs
    began_ns: int
    with_kernel: bool
    threads: int
    groups: Mapping[str, Sequence[Group]]
    before: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refusals = {event: code for group in self.all_groups for event, code in group.refusals.items()}
        self.not_counted = _summary(refusals)

    @property
    def all_groups(self) -> list[Group]:
        return [group for groups in self.groups.values() for group in groups]

    @property
    def descriptors(self) -> int:
        return sum(len(group.fds) for group in self.all_groups)

    def values(self) -> dict[str, Scalar]:
        values: dict[str, Scalar] = {"began_seconds": self.began_ns, "includes_kernel": self.with_kernel}
        for name, groups in self.groups.items():
            with suppress(OSError):  # the kernel could not sum over started threads: no value
                values |= self._summed(name, [group for group in groups if group.fds])
        return values | ({NOT_COUNTED.name: self.not_counted} if self.not_counted else {})

    def _summed(self, name: str, groups: Sequence[Group]) -> dict[str, Scalar]:
        if not groups:
            return {}
        counts = [group.read() for group in groups]
        enabled, running = sum([count.enabled for count in counts]), sum([count.running for count in counts])
        earlier_enabled, earlier_running = self.before.get(name, (0, 0))
        self.before[name] = (enabled, running)
        times: dict[str, Scalar] = {f"{name}_enabled_seconds_total": enabled, f"{name}_running_seconds_total": running}
        if enabled > earlier_enabled and running == earlier_running:  # somebody else has the counters
            return times
        if len(counts) == 1:
            return {**times, **counts[0].values}
        shared = set.intersection(*(set(c.values) for c in counts))
        return times | {event: sum(c.values[event] for c in counts) for event in shared}

    def close(self) -> None:
        for group in self.all_groups:
            group.close()


@dataclass(frozen=True)
class PerfCollector:
    """Counters of a core's performance monitoring unit and of the scheduler.

    Counted of a rank are the threads that it has when it is first seen, and the threads and processes that any of them
    starts from then on; nothing before. A thread that starts in the milliseconds in which the others are being opened
    may be missed. Raw counts are kept with the times enabled and running, never extrapolated ones.
    Needs Linux 4.13, which sums groups over inherited counters (commit ba5213ae6b88).
    Source: perf_event_open(2); https://docs.kernel.org/admin-guide/perf-security.html
    """

    pids: Callable[[], Iterable[int]] = no_pids
    proc: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    with_cores: bool = True
    kernel: PerfKernel = field(default_factory=LinuxPerf, repr=False, compare=False)
    descriptors: int = field(default_factory=_descriptors)
    metric_set: ClassVar[MetricSet] = PERF
    _watches: dict[str, _Watch] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, _close, self._watches)

    def available(self) -> bool:
        """Return whether the kernel lets this process count itself."""
        try:
            self._refuse_unless_allowed()
        except UnavailableError:
            return False
        return True

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every living rank, and for every core where that is allowed. Raises: UnavailableError."""
        self._refuse_unless_allowed()
        targets = self._targets()
        self._keep_only(targets)
        refused: dict[str, str] = {}
        for device, target in targets.items():
            try:
                yield Sample(device, self._values(device, target))
            except OutOfFilesError:  # no fault of the rank: it stays counted
                raise
            except UnavailableError:  # it has ended
                self._drop(device)
            except OSError as error:
                self._drop(device)
                if _is_reported(error, target):
                    refused[device] = f"all: {_name_of(error.errno)}, {error.strerror}"[:200]
                elif isinstance(error, PermissionError):  # and so would be every other core
                    break
        if refused and not self._watches:
            raise UnavailableError(f"perf_event_open: {next(iter(refused.values()))}; see {self._paranoid}")
        yield from (Sample(device, {NOT_COUNTED.name: reason}) for device, reason in refused.items())

    def _keep_only(self, targets: Mapping[str, Target]) -> None:
        for gone in self._watches.keys() - targets.keys():
            self._watches.pop(gone).close()

    def _targets(self) -> dict[str, Target]:
        """Return ranks and cores by device, ranks first."""
        cores = self._cores() if self.with_cores else []
        return {str(pid): Target(pid) for pid in self.pids()} | {f"cpu{core}": Target(-1, core) for core in cores}

    def _values(self, device: str, target: Target) -> dict[str, Scalar]:
        path = f"{self.proc}/{target.pid}/stat"
        generation = started_ticks(self.files.read(path), path) if target.cpu < 0 else 0
        watch = self._watches.get(device)
        if watch is not None and watch.generation != generation:
            self._drop(device)
            watch = None
        if watch is None:
            watch = self._watches[device] = self._watched(target, generation)
        return watch.values() | ({"threads_at_start": watch.threads} if target.cpu < 0 else {})

    def _watched(self, target: Target, generation: int) -> _Watch:
        targets = _threads(self.proc, target.pid) if target.cpu < 0 else [target]
        granted = self.descriptors if target.cpu < 0 else self.descriptors // 2  # a rank may come after the cores
        left = granted - sum(watch.descriptors for watch in self._watches.values())
        if len(targets) * min(map(len, GROUPS.values())) > left:
            needed = f"{len(targets) * EVENTS} descriptors are needed, {left} are left"
            raise OSError(errno.EMFILE, f"{needed}; raise RLIMIT_NOFILE")
        began_ns = time.monotonic_ns()
        try:
            return _Watch(generation, began_ns, True, len(targets), self._opened(targets, left, with_kernel=True))
        except PermissionError:
            return _Watch(generation, began_ns, False, len(targets), self._opened(targets, left, with_kernel=False))

    def _opened(self, targets: Sequence[Target], left: int, *, with_kernel: bool) -> dict[str, list[Group]]:
        """Open groups of each name, one a target, as long as descriptors are left for all targets."""
        groups: dict[str, list[Group]] = {name: [] for name in GROUPS}
        try:
            for name, counted in GROUPS.items():
                events = [counter.event for counter in counted]
                if len(targets) * len(events) > left:
                    groups[name].append(Group(self.kernel, (), {}, {event.name: errno.EMFILE for event in events}))
                    continue
                for target in targets:
                    with suppress(ProcessLookupError):  # the thread has ended meanwhile
                        groups[name].append(opened(self.kernel, events, target, with_kernel=with_kernel))
                left -= sum(len(group.fds) for group in groups[name])
        except OSError:
            _Watch(0, 0, with_kernel, 0, groups).close()
            raise
        return groups

    def _cores(self) -> list[int]:
        """Return the cores that are online; none if that is unknown."""
        path = f"{self.sysfs}/devices/system/cpu/online"
        with suppress(UnavailableError, MalformedError):
            parts = [part.partition(b"-") for part in self.files.read(path).strip().split(b",")]
            ends = [(count(first, path), count(last or first, path)) for first, _, last in parts]
            return [core for first, last in ends for core in range(first, min(last, first + 65536) + 1)]
        return []

    def _refuse_unless_allowed(self) -> None:
        if self._watches:
            return
        try:
            event = GROUPS["software"][1].event
            opened(self.kernel, [event], Target(0), with_kernel=False).close()
        except OSError as error:
            raise UnavailableError(f"perf_event_open: {error.strerror}; see {self._paranoid}") from error
        if not self.proc.is_dir():
            raise UnavailableError(f"{self.proc}: expected the kernel's process files")

    @property
    def _paranoid(self) -> str:
        return f"{self.proc}/sys/kernel/perf_event_paranoid"

    def _drop(self, device: str) -> None:
        watch = self._watches.pop(device, None)
        self.files.forget_file(f"{self.proc}/{device}/stat")
        if watch is not None:
            watch.close()


def _threads(proc: Path, pid: int) -> list[Target]:
    try:
        return [Target(int(folder.name)) for folder in (proc / str(pid) / "task").iterdir()]
    except OSError as error:
        if error.errno in OUT_OF_FILES:  # no fault of the rank
            raise
        raise UnavailableError(f"{proc}/{pid}/task: {error.strerror}") from error


def _is_reported(error: OSError, target: Target) -> bool:
    """Return whether to report this error: a target that is gone has no row, and few may count on cores."""
    return error.errno in OUT_OF_FILES or (error.errno in REFUSED and target.cpu < 0)


def _summary(refusals: Mapping[str, int]) -> str:
    """Return a summary such as `ENOENT: cycles, instructions`."""
    by_code: dict[int, list[str]] = {}
    for event, code in refusals.items():
        by_code.setdefault(code, []).append(event.removesuffix("_total"))
    return "; ".join(f"{_name_of(code)}: {', '.join(events)}" for code, events in sorted(by_code.items()))[:200]


def _name_of(code: int | None) -> str:
    return errno.errorcode.get(code or 0, "unknown error")


def _close(watches: dict[str, _Watch]) -> None:
    while watches:
        watches.popitem()[1].close()


SOURCE = Source(
    "perf",
    lambda host, options: PerfCollector(
        host.pids, host.proc, host.sysfs, host.files, options.flag("cores", default=False)
    ),
    advice=ADVICE,
    interval_seconds=1.0,  # the kernel interrupts each core to read its counters
    options=("cores",),  # off by default: every read of a core interrupts it
)
