"""NVIDIA GPUs: energy, load, memory, clocks, throttling, links and errors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample, Scalar
from crosswind.ingest.collectors.listing import Listing
from crosswind.ingest.collectors.source import Host, Options, Source
from crosswind.ingest.gpu.module_epoch import module_epoch
from crosswind.ingest.gpu.nvml_session import UNKNOWN_TO_IT, LostError, NvmlDevice, NvmlSession, driver_file

PERCENT, MILLI, NANO, KIBIBYTE, KILOBYTE, MEGA = 0.01, 1e-3, 1e-9, 1024, 1000, 1e6
ALL_LINKS = 0xFFFFFFFF
NO_SCOPE = 0
# The members of nvmlValue_t by nvmlValueType_t; the one that is missing here is a double.
MEMBERS = {1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


def _counter(name: str, description: str, *, unit: str = "", scale: float = 1.0) -> Column:
    # All have 64 bits or less than a day would need to fill them; they fall when the driver or the GPU restarts.
    return Column(name, description, Kind.COUNTER, "uint64", unit, scale, on_full=OnFull.RESET)


def _throttle(reason: str, description: str) -> Column:
    name = f"throttle_{reason}_seconds_total"
    return _counter(name, f"below its clocks because of {description}", unit="seconds", scale=NANO)


def _clock(which: str) -> Column:
    return Column(f"{which}_clock_hertz", f"clock of {which}", unit="hertz", scale=MEGA)


FACTS = (
    Column("index", "place in NVML's list, which changes when GPUs come and go", Kind.FACT),
    Column("name", "model", Kind.FACT, "string"),
    Column("pci_bus_id", "where it is plugged in", Kind.FACT, "string"),
    Column("driver_version", "version of the driver", Kind.FACT, "string"),
    Column("parent", "the GPU that this is a part of (MIG)", Kind.FACT, "string"),
    Column("mig_instance", "GPU instance/compute instance of this part (MIG)", Kind.FACT, "string"),
    Column("driver_epoch", "another number after every load of the driver", Kind.EPOCH),
)
THROTTLE = {
    "POWER": _throttle("power", "its power limit"),
    "THERMAL": _throttle("thermal", "heat"),
    "SYNC_BOOST": _throttle("sync_boost", "the slowest GPU of its group"),
    "BOARD_LIMIT": _throttle("board_limit", "the limit of its board"),
    "LOW_UTILIZATION": _throttle("low_utilization", "too little work"),
    "RELIABILITY": _throttle("reliability", "the reliability limit of its board"),
}
# Read by one call: field, scope. From 251 on, numbers mean different things to different drivers.
FIELDS = {
    (83, NO_SCOPE): _counter("energy_joules_total", "used since the driver was loaded", unit="joules", scale=MILLI),
    (186, NO_SCOPE): Column("instant_power_watts", "power of this moment", unit="watts", scale=MILLI),
    (82, NO_SCOPE): Column("memory_temperature_celsius", "temperature of its memory", unit="celsius"),
    (138, ALL_LINKS): _counter(
        "nvlink_transmit_bytes_total", "data sent over all NVLinks", unit="bytes", scale=KIBIBYTE
    ),
    (139, ALL_LINKS): _counter(
        "nvlink_receive_bytes_total", "data received over all NVLinks", unit="bytes", scale=KIBIBYTE
    ),
    (3, NO_SCOPE): _counter("ecc_corrected_total", "memory errors corrected since the driver was loaded"),
    (4, NO_SCOPE): _counter("ecc_uncorrected_total", "memory errors not corrected since the driver was loaded"),
    (5, NO_SCOPE): _counter("ecc_corrected_lifetime_total", "memory errors corrected, ever"),
    (6, NO_SCOPE): _counter("ecc_uncorrected_lifetime_total", "memory errors not corrected, ever"),
    (142, NO_SCOPE): _counter("remapped_rows_corrected_total", "rows of memory replaced for corrected errors"),
    (143, NO_SCOPE): _counter("remapped_rows_uncorrected_total", "rows of memory replaced for other errors"),
    (144, NO_SCOPE): Column("remapping_pending", "1 when a row will be replaced at the next reset"),
    (145, NO_SCOPE): Column("remapping_failed", "1 when a row could not be replaced"),
    (94, NO_SCOPE): _counter("pcie_replays_total", "packets sent again over PCIe"),
    **{(74 + place, NO_SCOPE): column for place, column in enumerate(THROTTLE.values())},
}


@dataclass(frozen=True)
class Question:
    """One call: the names of its constants, and the columns of its answer by attribute.

    It is not asked for what a field has answered; an answer above `most` is discarded.
    """

    call: str
    constants: tuple[str, ...]
    columns: Mapping[str, Column]
    most: int = 2**64 - 1


QUESTIONS = (
    Question(
        "nvmlDeviceGetPowerUsage",
        (),
        {"": Column("power_watts", "power; on many models an average over 1 s", unit="watts", scale=MILLI)},
    ),
    Question(
        "nvmlDeviceGetEnforcedPowerLimit",
        (),
        {"": Column("power_limit_watts", "power that it may use", unit="watts", scale=MILLI)},
    ),
    Question(
        "nvmlDeviceGetUtilizationRates",
        (),
        {
            "gpu": Column("utilization_ratio", "share of time in which any kernel ran", unit="ratio", scale=PERCENT),
            "memory": Column(
                "memory_utilization_ratio", "share of time in which memory was used", unit="ratio", scale=PERCENT
            ),
        },
        most=100,
    ),
    Question(
        "nvmlDeviceGetMemoryInfo",
        ("nvmlMemory_v2",),
        {
            "total": Column("memory_total_bytes", "memory, the reserved part included", unit="bytes"),
            "used": Column("memory_used_bytes", "given to programs", unit="bytes"),
            "free": Column("memory_free_bytes", "in no use", unit="bytes"),
            "reserved": Column("memory_reserved_bytes", "kept by driver and firmware", unit="bytes"),
        },
    ),
    Question(
        "nvmlDeviceGetTemperature",
        ("NVML_TEMPERATURE_GPU",),
        {"": Column("temperature_celsius", "temperature of the chip", unit="celsius")},
    ),
    Question("nvmlDeviceGetClockInfo", ("NVML_CLOCK_GRAPHICS",), {"": _clock("graphics")}),
    Question("nvmlDeviceGetClockInfo", ("NVML_CLOCK_SM",), {"": _clock("sm")}),
    Question("nvmlDeviceGetClockInfo", ("NVML_CLOCK_MEM",), {"": _clock("memory")}),
    Question(
        "nvmlDeviceGetFanSpeed",
        (),
        {"": Column("fan_speed_ratio", "share of the full speed", unit="ratio", scale=PERCENT)},
    ),
    Question(
        "nvmlDeviceGetPerformanceState",
        (),
        {"": Column("performance_state", "0 (fastest) to 15")},
        most=15,
    ),
    Question(
        "nvmlDeviceGetCurrentClocksEventReasons",
        (),
        {"": Column("clocks_event_reasons", "bits: what holds the clocks down now", dtype="uint64")},
    ),
    *(  # where the fields above are refused: on an H100 each of these takes as long as all six fields
        Question("nvmlDeviceGetViolationStatus", (f"NVML_PERF_POLICY_{policy}",), {"violationTime": column})
        for policy, column in THROTTLE.items()
    ),
)
# Each of these two calls measures for 20 ms.
PCIE_QUESTIONS = tuple(
    Question(
        "nvmlDeviceGetPcieThroughput",
        (f"NVML_PCIE_UTIL_{direction}_BYTES",),
        {
            "": Column(
                f"pcie_{name}_bytes_per_second",
                f"{what} over PCIe in the last 20 ms; only where `pcie` is set, as the call takes as long",
                unit="bytes_per_second",
                scale=KILOBYTE,
            )
        },
    )
    for direction, name, what in (("TX", "transmit", "sent"), ("RX", "receive", "received"))
)
MEMORY_QUESTION = next(question for question in QUESTIONS if question.call == "nvmlDeviceGetMemoryInfo")
GPU = MetricSet(
    "gpu",
    "each NVIDIA GPU, and each part of one that MIG made; the device is its UUID",
    tuple(
        dict.fromkeys(
            (
                *FACTS,
                *FIELDS.values(),
                *(column for question in (*QUESTIONS, *PCIE_QUESTIONS) for column in question.columns.values()),
            )
        )
    ),
)


@dataclass(frozen=True)
class NvmlCollector:
    """Each GPU by NVML. Values that a model, driver or user lacks are missing, and tried again once a minute.

    Source: nvml.h, https://docs.nvidia.com/deploy/nvml-api/ (nvmlDeviceGetFieldValues, nvmlViolationTime_t)
    """

    session: NvmlSession = field(default_factory=NvmlSession, repr=False, compare=False)
    proc: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    pcie: bool = False
    metric_set: ClassVar[MetricSet] = GPU
    _listing: Listing[NvmlDevice] = field(default_factory=Listing, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether the driver is loaded and the library installed."""
        return is_nvml_here(self.proc)

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every GPU that answers. Raises: UnavailableError."""
        samples = self._listing.samples(self.session.devices, self._sample)
        if not samples:
            raise UnavailableError("NVML: no GPU answers")
        yield from samples

    def _sample(self, device: NvmlDevice) -> Sample | None:
        values: dict[str, Scalar] = dict(device.facts)
        values.update(module_epoch(self.sysfs, "nvidia"))
        questions = (*QUESTIONS, *PCIE_QUESTIONS) if self.pcie else QUESTIONS
        try:
            if device.is_part:  # its other values would be the whole GPU's
                questions = (MEMORY_QUESTION,)
            else:
                values.update(self._fields(device))
            for question in questions:
                if not all(column.name in values for column in question.columns.values()):
                    values.update(self._answer(device, question))
        except LostError:
            return None
        return Sample(device.uuid, values)

    def _answer(self, device: NvmlDevice, question: Question) -> dict[str, Scalar]:
        constants = [getattr(self.session.library, name) for name in question.constants]
        answer = self.session.ask(device, question.call, *constants)
        values: dict[str, Scalar] = {}
        for attribute, column in question.columns.items():
            value = getattr(answer, attribute, None) if attribute else answer
            if type(value) is int and 0 <= value <= question.most:
                values[column.name] = value
        return values

    def _fields(self, device: NvmlDevice) -> dict[str, Scalar]:
        session = self.session
        wanted = tuple(field_id for field_id in FIELDS if not session.refusals.holds((device.uuid, field_id)))
        values: dict[str, Scalar] = {}
        for answer in session.ask(device, "nvmlDeviceGetFieldValues", wanted) or () if wanted else ():
            field_id = (answer.fieldId, answer.scopeId)
            if answer.nvmlReturn == 0:
                values.update(_field_value(FIELDS.get(field_id), answer))
                continue
            session.judge_code(answer.nvmlReturn, f"field {field_id[0]}")
            if answer.nvmlReturn in UNKNOWN_TO_IT:
                session.refusals.note((device.uuid, field_id))
        return values


def is_nvml_here(proc: Path) -> bool:
    """Return whether NVIDIA's driver is loaded and its Python library installed."""
    return driver_file(proc).exists() and find_spec("pynvml") is not None


def _field_value(column: Column | None, answer: Any) -> dict[str, Scalar]:
    member = MEMBERS.get(answer.valueType)
    value = getattr(answer.value, member) if member else None
    return {column.name: value} if column and type(value) is int and value >= 0 else {}


def _made(host: Host, options: Options) -> NvmlCollector:
    session, pcie = NvmlSession(proc=host.proc), options.flag("pcie", default=False)
    return NvmlCollector(session, host.proc, host.sysfs, pcie)


SOURCE = Source(
    "gpu",
    _made,
    advice="load NVIDIA's driver and pip install 'crosswind[gpu]'; see docs/gpu.md",
    interval_seconds=1.0,
    timeout_seconds=5.0,
    options=("pcie",),
)
