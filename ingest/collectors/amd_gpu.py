"""AMD GPUs: energy, load, memory, clocks, throttling, links and errors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample, Scalar
from crosswind.ingest.collectors.listing import Listing
from crosswind.ingest.collectors.source import Host, Options, Source
from crosswind.ingest.gpu.amd_session import AmdDevice, AmdSession
from crosswind.ingest.gpu.module_epoch import module_epoch

PERCENT, KIBIBYTE, MEGA = 0.01, 1024, 1e6
ENERGY_UNIT_JOULES = 2**-16  # documented as 15.259 microjoules
ROUNDED_MICROJOULES = (15.2, 15.4)  # what the library rounds it to


def _counter(name: str, description: str, *, unit: str = "", scale: float = 1.0, width_bits: int = 64) -> Column:
    return Column(name, description, Kind.COUNTER, "uint64", unit, scale, width_bits, OnFull.RESET)


def _throttle(reason: str, description: str) -> Column:
    return _counter(f"throttle_{reason}_total", f"controller cycles held down by {description}; of accumulation_total")


FACTS = (
    Column("index", "place in AMD SMI's list", Kind.FACT),
    Column("name", "model", Kind.FACT, "string"),
    Column("pci_bus_id", "where it is plugged in", Kind.FACT, "string"),
    Column("driver_version", "version of the driver", Kind.FACT, "string"),
    Column("driver_epoch", "another number after every load of the driver", Kind.EPOCH),
)
ENERGY = (
    _counter("energy_joules_total", "used; on some stacks it never moves", unit="joules", scale=ENERGY_UNIT_JOULES),
    Column("energy_counted_ns", "the driver's clock when the energy was counted, in ns", Kind.FACT, "uint64"),
    Column(
        "energy_resolution_joules",
        "what the library says that one count of energy is; the energy is missing where it is not as documented",
        Kind.FACT,
        "float64",
        "joules",
        1e-6,
    ),
)
# Columns of one call's answer.
METRICS = {
    "current_socket_power": Column("power_watts", "power of this moment", unit="watts"),
    "average_socket_power": Column("average_power_watts", "power, averaged by the firmware", unit="watts"),
    "average_gfx_activity": Column(
        "utilization_ratio", "share of time in which it computed", unit="ratio", scale=PERCENT
    ),
    "average_umc_activity": Column(
        "memory_utilization_ratio", "share of time in which memory was used", unit="ratio", scale=PERCENT
    ),
    "temperature_edge": Column("edge_temperature_celsius", "temperature at the edge of the chip", unit="celsius"),
    "temperature_hotspot": Column("temperature_celsius", "temperature of the hottest spot", unit="celsius"),
    "temperature_mem": Column("memory_temperature_celsius", "temperature of its memory", unit="celsius"),
    "current_gfxclk": Column("graphics_clock_hertz", "clock of its cores", unit="hertz", scale=MEGA),
    "current_uclk": Column("memory_clock_hertz", "clock of its memory", unit="hertz", scale=MEGA),
    "pcie_replay_count_acc": _counter("pcie_replays_total", "packets sent again over PCIe"),
    "accumulation_counter": _counter("accumulation_total", "cycles of the controller that the throttle counts are of"),
    "prochot_residency_acc": _throttle("prochot", "the processor's heat signal"),
    "ppt_residency_acc": _throttle("power", "the power limit"),
    "socket_thm_residency_acc": _throttle("thermal", "the heat of the socket"),
    "vr_thm_residency_acc": _throttle("regulator_thermal", "the heat of the voltage regulator"),
    "hbm_thm_residency_acc": _throttle("memory_thermal", "the heat of its memory"),
}
LINKS = {
    "xgmi_read_data_acc": _counter(
        "xgmi_receive_bytes_total", "read over all XGMI links", unit="bytes", scale=KIBIBYTE
    ),
    "xgmi_write_data_acc": _counter(
        "xgmi_transmit_bytes_total", "written over all XGMI links", unit="bytes", scale=KIBIBYTE
    ),
}
MEMORY = {
    "amdsmi_get_gpu_memory_total": Column("memory_total_bytes", "memory", unit="bytes"),
    "amdsmi_get_gpu_memory_usage": Column("memory_used_bytes", "memory in use", unit="bytes"),
}
ECC = {
    "correctable_count": _counter("ecc_corrected_total", "errors corrected"),
    "uncorrectable_count": _counter("ecc_uncorrected_total", "errors not corrected"),
    "deferred_count": _counter("ecc_deferred_total", "errors not corrected, and not yet met by anybody"),
}
AMD_GPU = MetricSet(
    "amd_gpu",
    "each AMD GPU, or partition of one; the device is its UUID",
    (*FACTS, *ENERGY, *METRICS.values(), *LINKS.values(), *MEMORY.values(), *ECC.values()),
)


@dataclass(frozen=True)
class AmdGpuCollector:
    """Each GPU by AMD SMI. Values that a model, driver or user lacks are missing, and tried again once a minute.

    Source: https://rocm.docs.amd.com/projects/amdsmi/ (amdsmi_gpu_metrics_t, amdsmi_get_energy_count);
    drivers/gpu/drm/amd/include/kgd_pp_interface.h (struct gpu_metrics_v1_5)
    """

    session: AmdSession = field(default_factory=AmdSession, repr=False, compare=False)
    sysfs: Path = Path("/sys")
    metric_set: ClassVar[MetricSet] = AMD_GPU
    _listing: Listing[AmdDevice] = field(default_factory=Listing, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether the driver is loaded and the library installed."""
        return (self.sysfs / "module/amdgpu").is_dir() and find_spec("amdsmi") is not None

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every GPU that answers. Raises: UnavailableError."""
        samples = self._listing.samples(self.session.devices, self._sample)
        if not samples:
            raise UnavailableError("AMD SMI: no GPU answers")
        yield from samples

    def _sample(self, device: AmdDevice) -> Sample | None:
        values = {
            **_chosen(METRICS, metrics := self.session.ask(device, "amdsmi_get_gpu_metrics_info")),
            **_summed(metrics),
            **_energy(self.session.ask(device, "amdsmi_get_energy_count")),
            **self._memory(device),
            **_chosen(ECC, self.session.ask(device, "amdsmi_get_gpu_total_ecc_count")),
        }
        if not values:  # it does not answer any more
            return None
        return Sample(device.name, {**device.facts, **module_epoch(self.sysfs, "amdgpu"), **values})

    def _memory(self, device: AmdDevice) -> dict[str, Scalar]:
        kinds = getattr(self.session.library, "AmdSmiMemoryType", None)
        if kinds is None:
            return {}
        answers = {call: self.session.ask(device, call, kinds.VRAM) for call in MEMORY}
        return _chosen(MEMORY, answers)


def _chosen(columns: Mapping[str, Column], answer: Any) -> dict[str, Scalar]:
    """Return the numbers among the answers; unknown values are the text N/A."""
    if not isinstance(answer, dict):
        return {}
    values = {column.name: answer.get(name) for name, column in columns.items()}
    return {name: value for name, value in values.items() if type(value) is int and 0 <= value < 2**63}


def _summed(metrics: Any) -> dict[str, Scalar]:
    if not isinstance(metrics, dict):
        return {}
    links = {column.name: metrics.get(name) for name, column in LINKS.items()}
    link_counts = {name: [count for count in of or () if type(count) is int] for name, of in links.items()}
    return {name: sum(counts) for name, counts in link_counts.items() if counts}


def _energy(answer: Any) -> dict[str, Scalar]:
    if not isinstance(answer, dict):
        return {}
    resolution, count, instant = (
        answer.get(name) for name in ("counter_resolution", "energy_accumulator", "timestamp")
    )
    if type(resolution) is not float or type(count) is not int or type(instant) is not int:
        return {}
    least, most = ROUNDED_MICROJOULES
    energy = {"energy_joules_total": count} if least < resolution < most else {}
    return {**energy, "energy_counted_ns": instant, "energy_resolution_joules": resolution}


def _made(host: Host, _: Options) -> AmdGpuCollector:
    return AmdGpuCollector(AmdSession(sysfs=host.sysfs), host.sysfs)


SOURCE = Source(
    "amd_gpu",
    _made,
    advice="load amdgpu and install amdsmi of your ROCm version; see docs/gpu.md",
    interval_seconds=1.0,
    timeout_seconds=5.0,
)
