"""Memory of the node: what is used for what, and the counters of faults, paging, swapping and reclaim."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.errors import MalformedError, UnavailableError
from crosswind.data.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel_files import KernelFiles
from crosswind.ingest.procfs import count, entries

KIBIBYTE = 1024  # the kernel writes kB and means 1024 bytes
SIZES = {
    b"MemTotal": Column("total_bytes", "memory of the node", unit="bytes", scale=KIBIBYTE),
    b"MemFree": Column("free_bytes", "memory in no use at all", unit="bytes", scale=KIBIBYTE),
    b"MemAvailable": Column("available_bytes", "what programs could still get", unit="bytes", scale=KIBIBYTE),
    b"Buffers": Column("buffers_bytes", "cache of block devices", unit="bytes", scale=KIBIBYTE),
    b"Cached": Column("cached_bytes", "cache of files, shared memory included", unit="bytes", scale=KIBIBYTE),
    b"Dirty": Column("dirty_bytes", "waiting to be written to disk", unit="bytes", scale=KIBIBYTE),
    b"Writeback": Column("writeback_bytes", "being written to disk", unit="bytes", scale=KIBIBYTE),
    b"AnonPages": Column("anonymous_bytes", "memory of programs", unit="bytes", scale=KIBIBYTE),
    b"AnonHugePages": Column("anonymous_huge_bytes", "of it in huge pages", unit="bytes", scale=KIBIBYTE),
    b"Shmem": Column("shared_bytes", "shared memory and tmpfs", unit="bytes", scale=KIBIBYTE),
    b"Slab": Column("slab_bytes", "kernel objects", unit="bytes", scale=KIBIBYTE),
    b"SwapTotal": Column("swap_total_bytes", "swap space", unit="bytes", scale=KIBIBYTE),
    b"SwapFree": Column("swap_free_bytes", "unused swap space", unit="bytes", scale=KIBIBYTE),
}
EVENTS = {
    b"pgfault": Column("page_faults_total", "page faults, major ones included", Kind.COUNTER),
    b"pgmajfault": Column("major_page_faults_total", "page faults that waited for a disk", Kind.COUNTER),
    b"pswpin": Column("swapped_in_pages_total", "pages read from swap", Kind.COUNTER),
    b"pswpout": Column("swapped_out_pages_total", "pages written to swap", Kind.COUNTER),
    b"pgscan_direct": Column("direct_scanned_pages_total", "pages that allocations had to look at", Kind.COUNTER),
    b"oom_kill": Column("oom_kills_total", "processes killed for want of memory", Kind.COUNTER),
    b"pgpgin": Column("paged_in_bytes_total", "read from block devices", Kind.COUNTER, unit="bytes", scale=KIBIBYTE),
    b"pgpgout": Column("paged_out_bytes_total", "written to block devices", Kind.COUNTER, unit="bytes", scale=KIBIBYTE),
}
ALLOCATED = Column("allocated_pages_total", "pages handed out, over all zones", Kind.COUNTER)
MEMORY = MetricSet("memory", "memory of the node", (*SIZES.values(), *EVENTS.values(), ALLOCATED))


@dataclass(frozen=True)
class MemoryCollector:
    """Sizes in kB of 1024 bytes, and event counters since boot, of the whole node.

    Source: proc_meminfo(5), proc_vmstat(5)
    """

    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = MEMORY

    def available(self) -> bool:
        """Whether the kernel shows its memory."""
        return self.files.is_readable(f"{self.proc}/meminfo")

    def read(self) -> Iterator[Sample]:
        """One sample; event counters that this kernel lacks are missing. Raises: UnavailableError, MalformedError."""
        path = f"{self.proc}/meminfo"
        found = entries(self.files.read(path), path)
        if b"MemTotal" not in found:
            raise MalformedError(f"{path}: expected a line starting with MemTotal")
        sizes = {column.name: _kilobytes(found[name], path) for name, column in SIZES.items() if name in found}
        yield Sample("node", sizes | self._events())

    def _events(self) -> dict[str, int]:
        path = f"{self.proc}/vmstat"
        try:
            found = entries(self.files.read(path), path, b" ")
        except UnavailableError:  # sandboxes hide it; the sizes are worth having without
            return {}
        events = {column.name: count(found[name], path) for name, column in EVENTS.items() if name in found}
        zones = [count(value, path) for name, value in found.items() if name.startswith(b"pgalloc_")]
        return events | ({ALLOCATED.name: sum(zones)} if zones else {})


def _kilobytes(value: bytes, path: str) -> int:
    number, _, unit = value.partition(b" ")
    if unit != b"kB":
        raise MalformedError(f"{path}: expected a number of kB, found {value!r:.80}")
    return count(number, path)


SOURCE = Source("memory", lambda host, _: MemoryCollector(host.proc, host.files), advice="mount /proc")
