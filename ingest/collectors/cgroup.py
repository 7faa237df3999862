"""Control groups of watched runs: processor time, memory, storage traffic and pressure."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample, Scalar
from crosswind.ingest.collectors.source import Source, no_pids
from crosswind.ingest.kernel.cgroup_files import FILES, OF_LEAVES, PERIOD, QUOTA, Parse
from crosswind.ingest.kernel.cgroup_tree import Trees, groups_of, is_readable_place
from crosswind.ingest.kernel.kernel_files import KernelFiles

REFRESH_SECONDS = 10.0  # until a process that moved is noticed; a new one is at once


def _counter(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER)


def _nanoseconds(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER, unit="seconds", scale=1e-9)


def _microseconds(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER, unit="seconds", scale=1e-6)


def _limit(name: str, description: str) -> Column:
    return Column(name, description, unit="seconds", scale=1e-6)


def _bytes(name: str, description: str) -> Column:
    return Column(name, description, unit="bytes")


def _summed(name: str, description: str, unit: str = "") -> Column:
    # A disk that is taken out takes its share along: the sum falls, and was not reset.
    return Column(name, f"{description}, over all disks", Kind.COUNTER, unit=unit, on_full=OnFull.CLAMP)


CGROUP = MetricSet(
    "cgroup",
    "control groups of watched runs and of the jobs and steps around them; the device is the path",
    (
        _nanoseconds("cpu_seconds_total", "run on cores"),
        _nanoseconds("user_seconds_total", "of it in programs"),
        _nanoseconds("system_seconds_total", "of it in the kernel"),
        _limit(QUOTA, "cpu time it may use a period, over all cores; missing without a limit"),
        _limit(PERIOD, "length of a period"),
        _counter("periods_total", "periods of its limit of cpu time"),
        _counter("throttled_periods_total", "of them those in which it used up its time"),
        _nanoseconds("throttled_seconds_total", "its cores waited for the next period, summed"),
        _bytes("memory_bytes", "memory in use, file cache included"),
        _bytes("memory_peak_bytes", "the most it ever was"),
        _bytes("memory_limit_bytes", "more than this is not given; missing without a limit"),
        _bytes("swap_bytes", "swap space in use"),
        _bytes("anonymous_bytes", "memory of programs"),
        _bytes("file_bytes", "cache of files, shared memory included"),
        _bytes("shared_bytes", "shared memory and tmpfs"),
        _bytes("mapped_bytes", "files mapped into programs"),
        _bytes("dirty_bytes", "waiting to be written to disk"),
        _bytes("writeback_bytes", "being written to disk"),
        _bytes("kernel_bytes", "memory of the kernel on its behalf"),
        _bytes("slab_bytes", "of it kernel objects"),
        _counter("page_faults_total", "page faults"),
        _counter("major_page_faults_total", "page faults that waited for a disk"),
        _counter("refaulted_anonymous_pages_total", "program pages swapped out and soon wanted again"),
        _counter("refaulted_file_pages_total", "file pages reclaimed and soon wanted again"),
        _counter("memory_high_total", "times it was slowed down above its soft limit"),
        _counter("memory_limit_hits_total", "times it came up against its limit"),
        _counter("ooms_total", "times memory could not be had"),
        _counter("oom_kills_total", "processes killed for lack of memory"),
        _summed("read_bytes_total", "read", "bytes"),
        _summed("written_bytes_total", "written", "bytes"),
        _summed("reads_total", "read requests"),
        _summed("writes_total", "write requests"),
        Column("tasks", "processes and threads"),
        Column("rdma_handles", "connections to RDMA devices"),
        Column("rdma_objects", "queues, memory regions and the like on RDMA devices"),
        _microseconds("cpu_waiting_seconds_total", "at least one task waited for a core"),
        _microseconds("cpu_stalled_seconds_total", "all tasks waited for a core"),
        _microseconds("memory_waiting_seconds_total", "at least one task waited for memory"),
        _microseconds("memory_stalled_seconds_total", "all busy tasks waited for memory"),
        _microseconds("io_waiting_seconds_total", "at least one task waited for storage"),
        _microseconds("io_stalled_seconds_total", "all busy tasks waited for storage"),
        Column("is_populated", "a process lives in it or below", Kind.FACT, "bool"),
        Column("generation", "its number; a group created again under the same path has another", Kind.EPOCH),
    ),
)


@dataclass(frozen=True)
class _Group:
    """One control group: its folder in one of its trees, and its files in all of them."""

    path: str
    folder: str
    files: tuple[tuple[str, Parse], ...]


@dataclass
class _Cached:
    """The groups of the last look."""

    pids: frozenset[int] = frozenset()
    until: float = 0.0
    groups: tuple[_Group, ...] = ()


@dataclass(frozen=True)
class CgroupCollector:
    """The groups that watched processes are in, the jobs and steps around them, and those of `paths`.

    Both versions fill the same columns. Times are nanoseconds: microseconds of version 2 and clock ticks of version 1
    are turned into them exactly. `memory.peak` came with Linux 5.19.
    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html;
    https://docs.kernel.org/admin-guide/cgroup-v1/index.html; https://docs.kernel.org/accounting/psi.html
    """

    root: Path = Path("/")
    pids: Callable[[], Iterable[int]] = no_pids
    paths: tuple[str, ...] = ()
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = CGROUP
    _cached: _Cached = field(default_factory=_Cached, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether a cgroup file system is mounted."""
        try:
            return bool(Trees.mounted(self.root, self.files).folders)
        except (UnavailableError, MalformedError):
            return False

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every group that is still there. Raises: UnavailableError, MalformedError."""
        for group in self._groups():
            try:
                generation = os.stat(group.folder).st_ino  # noqa: PTH116 - a path object costs more than the call
            except OSError:  # the step has ended
                self._forget(group)
                continue
            values: dict[str, Scalar] = {"generation": generation}
            for path, parse in group.files:
                try:
                    values |= parse(self.files.read(path), path)
                except (UnavailableError, MalformedError):  # switched off, or hidden; the others are there
                    continue
            yield Sample(group.path[:200], values)

    def _forget(self, group: _Group) -> None:
        for folder in {path.rpartition("/")[0] for path, _ in group.files}:
            self.files.forget(folder)
        self._cached.until = 0.0
        Trees.mounted(self.root, self.files)  # are there still any?

    def _groups(self) -> tuple[_Group, ...]:
        pids = frozenset(self.pids())
        cached = self._cached
        if pids != cached.pids or time.monotonic() >= cached.until:
            cached.groups = tuple(self._find(pids))
            cached.pids, cached.until = pids, time.monotonic() + REFRESH_SECONDS
        return cached.groups

    def _find(self, pids: Iterable[int]) -> Iterator[_Group]:
        trees = Trees.mounted(self.root, self.files).folders
        wanted = groups_of(pids, self.root / "proc", self.files)
        for place in filter(is_readable_place, self.paths):
            wanted.setdefault(place, set()).update(trees)
        for place, controllers in sorted(wanted.items()):
            folders = {name: trees[name] + place for name in FILES if name in controllers and name in trees}
            files = [file for name, folder in folders.items() for file in _files_in(folder, FILES[name])]
            if files:
                yield _Group(place, files[0][0].rpartition("/")[0], tuple(files))


def _files_in(folder: str, parsers: Mapping[str, Parse]) -> Iterator[tuple[str, Parse]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:  # it is gone, or this controller has no such group
        return
    names = {entry.name for entry in entries}
    is_leaf = not any(entry.is_dir() for entry in entries)
    for name, parse in parsers.items():
        if name in names:
            yield f"{folder}/{name}", parse
        elif is_leaf and OF_LEAVES.get(name) in names:
            yield f"{folder}/{OF_LEAVES[name]}", parse


SOURCE = Source(
    "cgroup",
    lambda host, options: CgroupCollector(host.root, host.pids, options.texts("paths"), host.files),
    advice="mount /sys/fs/cgroup; sources.cgroup.paths names further groups",
    options=("paths",),
)
