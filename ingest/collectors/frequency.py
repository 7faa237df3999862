"""Clocks of cores, and throttling of cores and packages by heat."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.devices import Device, DeviceList, number_in
from crosswind.ingest.collectors.listing import names_in
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles

KILO, MILLI = 1e3, 1e-3
CLOCK = Column("frequency_hertz", "clock, as the driver knows it", unit="hertz", scale=KILO)
LIMIT = Column("frequency_limit_hertz", "highest clock allowed; looked at every 9 s", unit="hertz", scale=KILO)
THROTTLES = Column("throttles_total", "times that heat began to slow it down", Kind.COUNTER)
THROTTLED = Column(
    "throttled_seconds_total",
    "time that it was slowed down by heat; grows when a slowdown ends",
    Kind.COUNTER,
    unit="seconds",
    scale=MILLI,
)
FREQUENCY = MetricSet(
    "frequency",
    "clocks and throttling; device cpu0 ... is a logical core, package0 ... a socket",
    (CLOCK, LIMIT, THROTTLES, THROTTLED),
)
CPU = re.compile(r"cpu\d+")


@dataclass(frozen=True)
class FrequencyCollector:
    """Kilohertz of each core; throttling where an Intel processor counts it.

    Every core of a package counts its package's throttling; it is read from one of them.

    Source: Documentation/admin-guide/pm/cpufreq.rst; arch/x86/kernel/cpu/mce/therm_throt.c
    """

    sysfs: Path = Path("/sys")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = FREQUENCY
    _cores: DeviceList = field(default_factory=DeviceList, init=False, repr=False, compare=False)

    @property
    def _folder(self) -> str:
        return f"{self.sysfs}/devices/system/cpu"

    def available(self) -> bool:
        """Return whether a core shows its clock or its throttling."""
        try:
            paths = [path for device in self._find() for _, path in device.files]
        except UnavailableError:
            return False
        return any(self.files.is_readable(path) for path in paths)

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every core and every package. Raises: UnavailableError."""
        samples = self._cores.samples(self._find, self.files)
        if not samples:
            raise UnavailableError(f"{self._folder}/cpu*: no core shows cpufreq or thermal_throttle")
        yield from samples

    def _find(self) -> Iterator[Device]:
        packages: set[int] = set()
        for cpu in filter(CPU.fullmatch, names_in(self._folder)):
            folder = f"{self._folder}/{cpu}"
            limit = number_in(f"{folder}/cpufreq/scaling_max_freq", self.files)
            clock = (CLOCK.name, f"{folder}/cpufreq/scaling_cur_freq")
            yield Device(cpu, (clock, *_throttling(folder, "core")), {} if limit is None else {LIMIT.name: limit})
            package = number_in(f"{folder}/topology/physical_package_id", self.files)
            if package is not None and package not in packages:
                packages.add(package)
                yield Device(f"package{package}", _throttling(folder, "package"))


def _throttling(folder: str, level: str) -> tuple[tuple[str, str], ...]:
    return (
        (THROTTLES.name, f"{folder}/thermal_throttle/{level}_throttle_count"),
        (THROTTLED.name, f"{folder}/thermal_throttle/{level}_throttle_total_time_ms"),
    )


SOURCE = Source(
    "frequency",
    lambda host, _: FrequencyCollector(host.sysfs, host.files),
    advice="a kernel that drives the clock (cpufreq) or an Intel processor; the hypervisor keeps both from guests",
    interval_seconds=1.0,
    timeout_seconds=5.0,  # kernels before 5.18 may wait 10 ms a core before they return its clock
)
