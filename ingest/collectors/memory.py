"""Memory of the node by use, and counters of faults, paging, swapping and reclaim."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.word_table import WordTable

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
    b"SReclaimable": Column("slab_reclaimable_bytes", "of it given back when needed", unit="bytes", scale=KIBIBYTE),
    b"SUnreclaim": Column("slab_unreclaimable_bytes", "of it kept", unit="bytes", scale=KIBIBYTE),
    b"KernelStack": Column("kernel_stack_bytes", "stacks of tasks in the kernel", unit="bytes", scale=KIBIBYTE),
    b"PageTables": Column("page_table_bytes", "maps from virtual to real memory", unit="bytes", scale=KIBIBYTE),
    b"Mapped": Column("mapped_bytes", "files mapped into programs", unit="bytes", scale=KIBIBYTE),
    b"Mlocked": Column("locked_bytes", "locked into memory by programs", unit="bytes", scale=KIBIBYTE),
    b"Unevictable": Column("unevictable_bytes", "not to be reclaimed, locked included", unit="bytes", scale=KIBIBYTE),
    b"Committed_AS": Column("committed_bytes", "promised to programs", unit="bytes", scale=KIBIBYTE),
    b"CommitLimit": Column("commit_limit_bytes", "what strict overcommit would allow", unit="bytes", scale=KIBIBYTE),
    b"Hugepagesize": Column("huge_page_bytes", "one page of the pool of huge pages", unit="bytes", scale=KIBIBYTE),
    b"SwapTotal": Column("swap_total_bytes", "swap space", unit="bytes", scale=KIBIBYTE),
    b"SwapFree": Column("swap_free_bytes", "unused swap space", unit="bytes", scale=KIBIBYTE),
}
POOL = {
    b"HugePages_Total": Column("huge_pages", "pages in the pool of huge pages"),
    b"HugePages_Free": Column("free_huge_pages", "of it in no use"),
    b"HugePages_Rsvd": Column("reserved_huge_pages", "free ones that are promised"),
    b"HugePages_Surp": Column("surplus_huge_pages", "above the pool's size"),
}
REFAULTED_FILE = Column("refaulted_file_pages_total", "file pages reclaimed and soon wanted again", Kind.COUNTER)
EVENTS = {
    b"pgfault": Column("page_faults_total", "page faults, major ones included", Kind.COUNTER),
    b"pgmajfault": Column("major_page_faults_total", "page faults that waited for a disk", Kind.COUNTER),
    b"pswpin": Column("swapped_in_pages_total", "pages read from swap", Kind.COUNTER),
    b"pswpout": Column("swapped_out_pages_total", "pages written to swap", Kind.COUNTER),
    b"pgscan_direct": Column("direct_scanned_pages_total", "pages that allocations had to look at", Kind.COUNTER),
    b"pgscan_kswapd": Column("background_scanned_pages_total", "pages that the reclaim thread looked at", Kind.COUNTER),
    b"pgsteal_direct": Column("direct_reclaimed_pages_total", "pages that allocations had to reclaim", Kind.COUNTER),
    b"pgsteal_kswapd": Column("background_reclaimed_pages_total", "pages the reclaim thread reclaimed", Kind.COUNTER),
    b"workingset_refault_anon": Column(
        "refaulted_anonymous_pages_total", "program pages swapped out and soon wanted again", Kind.COUNTER
    ),
    b"workingset_refault_file": REFAULTED_FILE,
    b"workingset_refault": REFAULTED_FILE,  # before Linux 5.9, where program pages are not counted
    b"compact_stall": Column("compaction_stalls_total", "allocations that waited for compaction", Kind.COUNTER),
    b"compact_fail": Column("compaction_failures_total", "of them without success", Kind.COUNTER),
    b"thp_fault_alloc": Column("huge_page_faults_total", "faults served by a transparent huge page", Kind.COUNTER),
    b"thp_fault_fallback": Column("huge_page_fallbacks_total", "faults that got small pages instead", Kind.COUNTER),
    b"thp_collapse_alloc": Column("huge_page_collapses_total", "small pages made a huge one later", Kind.COUNTER),
    b"numa_hit": Column("numa_hit_pages_total", "allocated on the node meant", Kind.COUNTER),
    b"numa_miss": Column("numa_miss_pages_total", "allocated on a node that was not the one meant", Kind.COUNTER),
    b"numa_foreign": Column("numa_foreign_pages_total", "meant for a node, allocated on another", Kind.COUNTER),
    b"numa_local": Column("numa_local_pages_total", "allocated on the node of the asking core", Kind.COUNTER),
    b"numa_other": Column("numa_other_pages_total", "allocated on another node than that of the core", Kind.COUNTER),
    b"numa_hint_faults": Column("numa_hint_faults_total", "faults made to learn who uses a page", Kind.COUNTER),
    b"numa_pages_migrated": Column("numa_migrated_pages_total", "moved to the node that uses them", Kind.COUNTER),
    b"drop_pagecache": Column("page_cache_drops_total", "times somebody threw away the file cache", Kind.COUNTER),
    b"drop_slab": Column("slab_drops_total", "times somebody threw away reclaimable kernel objects", Kind.COUNTER),
    b"oom_kill": Column("oom_kills_total", "processes killed for lack of memory", Kind.COUNTER),
    b"pgpgin": Column("paged_in_bytes_total", "read from block devices", Kind.COUNTER, unit="bytes", scale=KIBIBYTE),
    b"pgpgout": Column("paged_out_bytes_total", "written to block devices", Kind.COUNTER, unit="bytes", scale=KIBIBYTE),
}
ALLOCATED = Column("allocated_pages_total", "pages handed out, over all zones", Kind.COUNTER)
STALLED = Column("allocation_stalls_total", "allocations that had to reclaim memory first", Kind.COUNTER)
ZONES = ("_dma", "_dma32", "_normal", "_high", "_movable", "_device")  # no kernel has all of them
SUMMED = {
    ALLOCATED.name: tuple(f"pgalloc{zone}" for zone in ZONES),
    STALLED.name: ("allocstall", *(f"allocstall{zone}" for zone in ZONES)),  # older kernels: not by zone
}
MEMORY = MetricSet(
    "memory",
    "memory of the node",
    (*SIZES.values(), *POOL.values(), *dict.fromkeys(EVENTS.values()), ALLOCATED, STALLED),
)


TOTAL = "total_bytes"


def _size_words() -> WordTable:
    numbers, sizes = ({b"%b:" % name: column.name for name, column in columns.items()} for columns in (POOL, SIZES))
    return WordTable(numbers, sizes)


def _event_words() -> WordTable:
    zones = {zone.encode(): zone for zones in SUMMED.values() for zone in zones}
    return WordTable({name: column.name for name, column in EVENTS.items()} | zones)


@dataclass(frozen=True)
class MemoryCollector:
    """Sizes in kB of 1024 bytes, and event counters since boot, of the whole node.

    Source: proc_meminfo(5), proc_vmstat(5); https://docs.kernel.org/admin-guide/numastat.html,
    https://docs.kernel.org/admin-guide/mm/transhuge.html
    """

    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = MEMORY
    _sizes: WordTable = field(default_factory=_size_words, init=False, repr=False, compare=False)
    _events: WordTable = field(default_factory=_event_words, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether the kernel shows its memory."""
        return self.files.is_readable(f"{self.proc}/meminfo")

    def read(self) -> Iterator[Sample]:
        """Yield one sample, without counters that this kernel lacks. Raises: UnavailableError, MalformedError."""
        path = f"{self.proc}/meminfo"
        sizes = self._sizes.read(self.files.read(path), path)
        if TOTAL not in sizes:
            raise MalformedError(f"{path}: expected a line starting with MemTotal")
        yield Sample("node", sizes | self._summed())

    def _summed(self) -> dict[str, int]:
        path = f"{self.proc}/vmstat"
        try:
            counts = self._events.read(self.files.read(path), path)
        except UnavailableError:  # sandboxes hide it; the sizes are worth having without
            return {}
        for name, zones in SUMMED.items():
            pages = [counts.pop(zone) for zone in zones if zone in counts]
            if pages:
                counts[name] = sum(pages)
        return counts


SOURCE = Source("memory", lambda host, _: MemoryCollector(host.proc, host.files), advice="mount /proc")
