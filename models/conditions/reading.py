"""Readings of the samples before a run: one line a condition."""

from dataclasses import dataclass
from enum import StrEnum


class Over(StrEnum):
    """An aggregate over the devices of a node, or the nodes of a run; the value is its name in SQL."""

    SUM = "sum"
    MEAN = "avg"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True)
class Reading:
    """A condition from one metric set: the sum of some columns over a node's devices, then of the worst node.

    Counters become rates a second, of the newest two samples (`name`) and of the whole look-back (`name_recent`); of
    gauges the newest value counts. `divided_by` is another gauge of the row. `only` is SQL on the device's name.
    `of_kernel` also counts the other nodes of the same kernel: containers on one machine that are nodes of their own.
    """

    name: str
    metric_set: str
    columns: tuple[str, ...]
    devices: Over = Over.SUM
    nodes: Over = Over.MAX
    divided_by: str | None = None
    only: str = "true"
    of_kernel: bool = False

    @property
    def is_rate(self) -> bool:
        """Return whether its columns are counters."""
        return self.columns[0].endswith("_total")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the conditions read from it."""
        return (self.name, f"{self.name}_recent") if self.is_rate else (self.name,)


_BUSY = ("user_seconds_total", "nice_seconds_total", "system_seconds_total", "irq_seconds_total")
CPU_BUSY = (*_BUSY, "softirq_seconds_total", "steal_seconds_total")
PROCESS_FAULTS = ("minor_page_faults_total", "major_page_faults_total")
PROCESS_BYTES = ("storage_read_bytes_total", "storage_written_bytes_total")
BYTES = ("receive_bytes_total", "transmit_bytes_total")
DROPS = ("receive_drops_total", "transmit_drops_total", "receive_errors_total", "transmit_errors_total")
_IS_LINK = "device <> 'lo'"
_IS_CORE = "device like 'cpu%'"

# A disk's partitions are devices too, and no busier than the disk: the busiest device counts, not their sum.
READINGS: tuple[Reading, ...] = (
    Reading("cpu_busy_cores", "cpu", CPU_BUSY, only=_IS_CORE),
    Reading("cpu_busy_ratio", "cpu", CPU_BUSY, Over.MEAN, only=_IS_CORE),
    Reading("cpu_steal_ratio", "cpu", ("steal_seconds_total",), Over.MEAN, only=_IS_CORE),
    Reading("cpu_iowait_ratio", "cpu", ("iowait_seconds_total",), Over.MEAN, only=_IS_CORE),
    Reading("watched_cores", "process", ("run_seconds_total",), nodes=Over.SUM, of_kernel=True),
    Reading("watched_page_faults", "process", PROCESS_FAULTS, nodes=Over.SUM, of_kernel=True),
    Reading("watched_disk_bytes", "process", PROCESS_BYTES, nodes=Over.SUM, of_kernel=True),
    Reading("run_queue_wait", "process", ("run_queue_wait_seconds_total",)),
    Reading("cpu_pressure", "pressure", ("waiting_seconds_total",), only="device = 'cpu'"),
    Reading("io_pressure", "pressure", ("waiting_seconds_total",), only="device = 'io'"),
    Reading("memory_pressure", "pressure", ("waiting_seconds_total",), only="device = 'memory'"),
    Reading("memory_misses", "perf", ("cache_misses_total",), only=_IS_CORE),
    Reading("page_faults", "memory", ("page_faults_total",)),
    Reading("major_page_faults", "memory", ("major_page_faults_total",)),
    Reading("available_bytes", "memory", ("available_bytes",), nodes=Over.MIN),
    Reading("dirty_bytes", "memory", ("dirty_bytes", "writeback_bytes")),
    Reading("disk_busy_ratio", "disk", ("busy_seconds_total",), Over.MAX),
    Reading("disk_bytes", "disk", ("read_bytes_total", "written_bytes_total"), Over.MAX),
    Reading("disk_requests", "disk", ("requests_in_flight",), Over.MAX),
    Reading("network_bytes", "network", BYTES, only=_IS_LINK),
    Reading("network_drops", "network", DROPS, only=_IS_LINK),
    Reading("link_bytes_per_second", "network", ("speed_bytes_per_second",), Over.MIN, Over.MIN, only=_IS_LINK),
    Reading("retransmits", "protocol", ("retransmitted_segments_total",), only="device = 'tcp'"),
    Reading("out_of_order", "protocol", ("out_of_order_segments_total",), only="device = 'tcp'"),
    Reading("retransmit_timeouts", "protocol", ("retransmit_timeouts_total",), only="device = 'tcp'"),
    Reading("queue_drops", "qdisc", ("drops_total",)),
    Reading("queue_overlimits", "qdisc", ("overlimits_total",)),
    Reading("queue_backlog_bytes", "qdisc", ("backlog_bytes",)),
    Reading("cpu_quota_cores", "cgroup", ("cpu_quota_seconds",), Over.MIN, Over.MIN, divided_by="cpu_period_seconds"),
    Reading("throttled_ratio", "cgroup", ("throttled_seconds_total",), Over.MAX),
)

# Load beyond the watched processes of the node: condition -> the node's load, the load of its watched processes.
OTHERS = {
    "others_cores": ("cpu_busy_cores", "watched_cores"),
    "others_page_faults": ("page_faults", "watched_page_faults"),
    "others_disk_bytes": ("disk_bytes", "watched_disk_bytes"),
}
