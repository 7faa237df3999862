"""The files of a control group and the columns that they fill, the same for both versions."""

import os
from collections.abc import Callable, Mapping

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import Scalar
from crosswind.ingest.kernel.cgroup_tree import UNIFIED
from crosswind.ingest.kernel.procfs import count

NANOSECONDS_A_MICROSECOND = 1000
NANOSECONDS_A_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
QUOTA, PERIOD = "cpu_quota_seconds", "cpu_period_seconds"
UNLIMITED_BYTES = 1 << 62  # version 1 writes the largest number of pages that it can hold
Parse = Callable[[bytes, str], dict[str, Scalar]]


def _number(name: str, below: int = 1 << 64) -> Parse:
    """Return a parser of a number alone; `max`, and numbers from `below` on, mean that there is no limit."""

    def parse(content: bytes, path: str) -> dict[str, Scalar]:
        text = content.strip()
        value = below if text == b"max" else count(text, path)
        return {name: value} if value < below else {}

    return parse


def _keyed(columns: Mapping[bytes, str], scales: Mapping[bytes, int] | None = None) -> Parse:
    """Return a parser of lines of a key and a number; `scales` turn microseconds and ticks into exact nanoseconds."""
    factors = {key: (scales or {}).get(key, 1) for key in columns}

    def parse(content: bytes, path: str) -> dict[str, Scalar]:
        fields = content.split()
        numbers = dict(zip(fields[::2], fields[1::2], strict=False))
        return {name: count(numbers[key], path) * factors[key] for key, name in columns.items() if key in numbers}

    return parse


def _pressure(resource: str) -> Parse:
    names = {b"some": f"{resource}_waiting_seconds_total", b"full": f"{resource}_stalled_seconds_total"}

    def parse(content: bytes, path: str) -> dict[str, Scalar]:
        totals: dict[str, Scalar] = {}
        for line in content.splitlines():
            name, (_, mark, total) = names.get(line[:4]), line.rpartition(b" total=")
            if name and mark:
                totals[name] = count(total, path)
        return totals

    return parse


def _pairs(columns: Mapping[bytes, str]) -> Parse:
    """Return a parser of lines of a device's name and `key=number` pairs; summed over the devices."""

    def parse(content: bytes, path: str) -> dict[str, Scalar]:
        sums: dict[str, int] = {}
        for key, mark, value in (word.partition(b"=") for word in content.split()):
            if mark and key in columns:
                sums[columns[key]] = sums.get(columns[key], 0) + count(value, path)
        return dict(sums)

    return parse


def _cpu_max(content: bytes, path: str) -> dict[str, Scalar]:
    """Return the quota, unless it is `max`, and the period."""
    quota, _, period = content.strip().partition(b" ")
    return {} if quota == b"max" else {QUOTA: count(quota, path), PERIOD: count(period, path)}


def _blkio(read: str, written: str) -> Parse:
    """Return a parser of lines such as `8:0 Read 123`; the last one is `Total 123`, or 0 when nothing was done."""
    names = {b"Read": read, b"Write": written}

    def parse(content: bytes, path: str) -> dict[str, Scalar]:
        if not content.rstrip().rpartition(b"\n")[2].startswith(b"Total "):
            raise MalformedError(f"{path}: expected a last line starting with Total, found {content[-80:]!r:.80}")
        sums = dict.fromkeys(names.values(), 0)
        for fields in (line.split() for line in content.splitlines()):
            if len(fields) == 3 and fields[1] in names:
                sums[names[fields[1]]] += count(fields[2], path)
        return dict(sums)

    return parse


def _populated(content: bytes, path: str) -> dict[str, Scalar]:
    flags = _keyed({b"populated": "is_populated"})(content, path)
    return {name: bool(value) for name, value in flags.items()}


RDMA = {b"hca_handle": "rdma_handles", b"hca_object": "rdma_objects"}
IO_STAT = {
    b"rbytes": "read_bytes_total",
    b"wbytes": "written_bytes_total",
    b"rios": "reads_total",
    b"wios": "writes_total",
}
MEMORY_STAT = {
    b"anon": "anonymous_bytes",
    b"file": "file_bytes",
    b"shmem": "shared_bytes",
    b"file_mapped": "mapped_bytes",
    b"file_dirty": "dirty_bytes",
    b"file_writeback": "writeback_bytes",
    b"kernel": "kernel_bytes",
    b"slab": "slab_bytes",
    b"pgfault": "page_faults_total",
    b"pgmajfault": "major_page_faults_total",
    b"workingset_refault_anon": "refaulted_anonymous_pages_total",
    b"workingset_refault_file": "refaulted_file_pages_total",
}
MEMORY_STAT_1 = {  # sums over the groups below have the prefix
    b"total_rss": "anonymous_bytes",
    b"total_cache": "file_bytes",
    b"total_shmem": "shared_bytes",
    b"total_mapped_file": "mapped_bytes",
    b"total_dirty": "dirty_bytes",
    b"total_writeback": "writeback_bytes",
    b"total_swap": "swap_bytes",
    b"total_pgfault": "page_faults_total",
    b"total_pgmajfault": "major_page_faults_total",
    b"total_workingset_refault_anon": "refaulted_anonymous_pages_total",
    b"total_workingset_refault_file": "refaulted_file_pages_total",
}
CPU_TIMES = {
    b"usage_usec": "cpu_seconds_total",
    b"user_usec": "user_seconds_total",
    b"system_usec": "system_seconds_total",
    b"throttled_usec": "throttled_seconds_total",
}
CPU_TIMES_1 = {b"user": "user_seconds_total", b"system": "system_seconds_total"}
CPU_PERIODS = {b"nr_periods": "periods_total", b"nr_throttled": "throttled_periods_total"}
MEMORY_EVENTS = {
    b"high": "memory_high_total",
    b"max": "memory_limit_hits_total",
    b"oom": "ooms_total",
    b"oom_kill": "oom_kills_total",
}
# The parser of each file of a group, by controller; UNIFIED is version 2.
FILES: Mapping[str, Mapping[str, Parse]] = {
    UNIFIED: {
        "cpu.max": _cpu_max,
        "cpu.stat": _keyed(CPU_TIMES | CPU_PERIODS, dict.fromkeys(CPU_TIMES, NANOSECONDS_A_MICROSECOND)),
        "memory.current": _number("memory_bytes"),
        "memory.peak": _number("memory_peak_bytes"),
        "memory.max": _number("memory_limit_bytes"),
        "memory.swap.current": _number("swap_bytes"),
        "memory.stat": _keyed(MEMORY_STAT),
        "memory.events": _keyed(MEMORY_EVENTS),
        "io.stat": _pairs(IO_STAT),
        "rdma.current": _pairs(RDMA),
        "pids.current": _number("tasks"),
        "cpu.pressure": _pressure("cpu"),
        "memory.pressure": _pressure("memory"),
        "io.pressure": _pressure("io"),
        "cgroup.events": _populated,
    },
    "cpuacct": {
        "cpuacct.usage": _number("cpu_seconds_total"),
        "cpuacct.stat": _keyed(CPU_TIMES_1, dict.fromkeys(CPU_TIMES_1, NANOSECONDS_A_TICK)),
    },
    "cpu": {
        "cpu.stat": _keyed({**CPU_PERIODS, b"throttled_time": "throttled_seconds_total"}),
        "cpu.cfs_quota_us": _number(QUOTA),  # -1 without a limit: no number
        "cpu.cfs_period_us": _number(PERIOD),
    },
    "memory": {
        "memory.usage_in_bytes": _number("memory_bytes"),
        "memory.max_usage_in_bytes": _number("memory_peak_bytes"),
        "memory.limit_in_bytes": _number("memory_limit_bytes", UNLIMITED_BYTES),
        "memory.failcnt": _number("memory_limit_hits_total"),
        "memory.kmem.usage_in_bytes": _number("kernel_bytes"),
        "memory.stat": _keyed(MEMORY_STAT_1),
        "memory.oom_control": _keyed({b"oom_kill": "oom_kills_total"}),
    },
    "blkio": {
        "blkio.throttle.io_service_bytes_recursive": _blkio("read_bytes_total", "written_bytes_total"),
        "blkio.throttle.io_serviced_recursive": _blkio("reads_total", "writes_total"),
    },
    "pids": {"pids.current": _number("tasks")},
    "rdma": {"rdma.current": _pairs(RDMA)},
}


OF_LEAVES = {  # without the groups below: of use on older kernels, where there are none
    f"{name}_recursive": name for name in ("blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced")
}
