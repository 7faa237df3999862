"""Rates read of the samples of a run's nodes while it makes its steps: one line a counter or gauge.

Sources: proc_stat(5) (steal); Documentation/accounting/psi.rst; arch/x86/kernel/cpu/mce/therm_throt.c; nvml.h
(nvmlDeviceGetViolationStatus); amdgpu's kgd_pp_interface.h (accumulation_counter, *_residency_acc);
Documentation/networking/snmp_counter.rst; InfiniBand Architecture Specification 1 (PortXmitWait). docs/metrics.md has
every column.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.models.conditions.reading import BYTES, Over

CLOCKS = ("core_clock", "gpu_clock")  # hertz: what a run lost by them is told against other runs


@dataclass(frozen=True)
class Rate:
    """A column of segments from one metric set: how fast some counters grow together, on the worst node.

    `over` are counters whose growth takes the place of the seconds; `per` is a gauge of the row, by which growth is
    divided. Without a counter it is the mean of a gauge. `device` is a name, or a beginning and %. `only` is SQL on the
    device and on raw columns, those of `asks`. Where several rates have one column, the largest counts.
    """

    column: str
    metric_set: str
    columns: tuple[str, ...]
    devices: Over = Over.MAX
    nodes: Over = Over.MAX
    over: tuple[str, ...] = ()
    per: str = ""
    device: str = "%"
    only: str = "true"
    asks: tuple[str, ...] = ()

    @property
    def is_gauge(self) -> bool:
        """Return whether its mean counts, and not its growth."""
        return not self.columns[0].endswith("_total")

    def is_of(self, devices: "pd.Series[str]") -> NDArray[np.bool_]:
        """Return which of these devices count."""
        begin = self.device.removesuffix("%")
        return (devices.str.startswith(begin) if begin != self.device else devices == begin).to_numpy(np.bool_)

    @property
    def needs(self) -> set[str]:
        """The columns that are read."""
        return {*self.columns, *self.over, *self.asks, *filter(None, [self.per])}


_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_CORE_TIME = tuple(f"{mode}_seconds_total" for mode in _MODES)
_LINK = "device <> 'lo'"
_IN_USE = "utilization_ratio > 0"
# Frames that ask a sender to stop; durations and transitions are told beside them under names of their own.
_PAUSES = "statistic like 'rx%pause%' and statistic not like '%duration%' and statistic not like '%transition%'"
_RETRIES = (
    *("local_ack_timeout_err_total", "packet_seq_err_total", "rnr_nak_retry_err_total", "roce_adp_retrans_total"),
    *("to_retransmits_total", "retrans_pkts_total", "retransmitted_segments_total"),
)
_MARKS = ("rp_cnp_handled_total", "cnp_received_total", "np_ecn_marked_roce_packets_total")
# Of an AMD GPU the controller's cycles are counted that were held down, beside all of them.
_AMD_CYCLES = ("accumulation_total",)
_AMD_HEAT = tuple(f"throttle_{by}_total" for by in ("prochot", "thermal", "regulator_thermal", "memory_thermal"))
_CXI_RETRIES = ("pct_retry_srb_requests_total", "hni_llr_tx_replay_total")
_CXI_PAUSES = tuple(f"hni_rx_paused_tc{number}_cycles_total" for number in range(8))


RATES: tuple[Rate, ...] = (
    # Seconds a second.
    Rate("throttled", "cgroup", ("throttled_seconds_total",)),
    Rate("stolen", "cpu", ("steal_seconds_total",), over=_CORE_TIME, device="all"),
    Rate("heat_throttled", "frequency", ("throttled_seconds_total",), device="package%"),
    Rate("heat_throttled", "gpu", ("throttle_thermal_seconds_total",)),
    Rate("power_throttled", "gpu", ("throttle_power_seconds_total",)),
    Rate("power_throttled", "gpu", ("throttle_board_limit_seconds_total",)),
    *(Rate("heat_throttled", "amd_gpu", (column,), over=_AMD_CYCLES) for column in _AMD_HEAT),
    Rate("power_throttled", "amd_gpu", ("throttle_power_total",), over=_AMD_CYCLES),
    Rate("memory_stalled", "pressure", ("waiting_seconds_total",), device="memory"),
    Rate("io_stalled", "cgroup", ("io_waiting_seconds_total",)),
    Rate("io_stalled", "nfs", ("read_execute_seconds_total",)),
    Rate("io_stalled", "lustre", ("read_seconds_total",)),
    Rate("cpu_waited", "cgroup", ("cpu_waiting_seconds_total",)),
    *(Rate("link_busy", "network", (column,), per="speed_bytes_per_second", only=_LINK) for column in BYTES),
    *(Rate("link_busy", "infiniband", (column,), per="rate_bytes_per_second") for column in BYTES),
    # Counts a second.
    Rate("swapped_in", "memory", ("swapped_in_pages_total",)),
    Rate("out_of_order", "protocol", ("out_of_order_segments_total",), device="tcp"),
    Rate("timeouts", "protocol", ("retransmit_timeouts_total",), device="tcp"),
    Rate("retransmits", "protocol", ("retransmitted_segments_total",), device="tcp"),
    *(Rate("retries", "infiniband", (column,)) for column in _RETRIES),
    *(Rate("retries", "cxi", (column,)) for column in _CXI_RETRIES),
    Rate("overlimits", "qdisc", ("overlimits_total",), Over.SUM),
    Rate("pauses", "ethtool", ("value_total",), only=_PAUSES, asks=("statistic",)),
    Rate("pauses", "cxi", _CXI_PAUSES),
    Rate("port_waits", "infiniband", ("transmit_wait_total",)),
    *(Rate("marks", "infiniband", (column,)) for column in _MARKS),
    Rate("marks", "protocol", ("delivered_marked_segments_total",), device="tcp"),
    # Gauges.
    Rate("backlog", "qdisc", ("backlog_bytes",), Over.SUM),
    Rate("core_clock", "frequency", ("frequency_hertz",), nodes=Over.MIN, device="cpu%"),
    *(
        Rate("gpu_clock", name, (clock,), Over.MIN, Over.MIN, only=_IN_USE, asks=("utilization_ratio",))
        for name, clock in (("gpu", "sm_clock_hertz"), ("amd_gpu", "graphics_clock_hertz"))
    ),
)
