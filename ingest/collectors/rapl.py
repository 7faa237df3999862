"""Energy of processor packages, memory and platform, counted by the processor itself (RAPL)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample, Scalar
from crosswind.ingest.collectors.devices import Device, DeviceList, number_in, text_in
from crosswind.ingest.collectors.listing import names_in
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles

MICRO = 1e-6
MAX_WATTS = 2000.0  # more than any zone of a node draws: processors have limits of 400 to 600 W, psys holds several
ENERGY = "energy_joules_total"
RANGE = Column("range_joules", "where the energy counter wraps", Kind.FACT, unit="joules", scale=MICRO)


def _limit(name: str, where: str) -> Column:
    return Column(f"{name}_limit_watts", f"power limit {where}; looked at every 9 s", unit="watts", scale=MICRO)


LIMITS = {
    "long_term": _limit("long_term", "over the longer window"),
    "short_term": _limit("short_term", "over the shorter window"),
    "peak_power": _limit("peak_power", "at any instant"),
}
RAPL = MetricSet(
    "rapl",
    "energy of each RAPL zone (the device: package-0, package-0/dram, psys ...), never to be summed: a package holds"
    " its core and uncore, psys holds packages and memory",
    (
        Column(
            ENERGY, "energy used", Kind.COUNTER, unit="joules", scale=MICRO, range_from=RANGE.name, max_rate=MAX_WATTS
        ),
        RANGE,
        *LIMITS.values(),
    ),
)
# Zones of intel-rapl-mmio are the same registers by another way; AMD's processors are under intel-rapl as well.
ZONE = re.compile(r"intel-rapl:\d+(:\d+)*")


@dataclass(frozen=True)
class RaplCollector:
    """Microjoules of each zone, with the range after which the counter starts again.

    Source: https://docs.kernel.org/power/powercap/powercap.html; drivers/powercap/intel_rapl_common.c: a register of
    32 bits in energy units, hence the odd range; intel_rapl_tpmi.c registers under intel-rapl too
    """

    sysfs: Path = Path("/sys")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = RAPL
    _zones: DeviceList = field(default_factory=DeviceList, init=False, repr=False, compare=False)

    @property
    def _folder(self) -> str:
        return f"{self.sysfs}/class/powercap"

    def available(self) -> bool:
        """Return whether there is a zone whose energy this user may read."""
        try:
            return any(self.files.is_readable(path) for zone in self._find() for _, path in zone.files)
        except UnavailableError:
            return False

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every zone. Raises: UnavailableError, also where the kernel keeps the energy for root."""
        samples = self._zones.samples(self._find, self.files)
        if not samples:
            raise UnavailableError(f"{self._folder}/intel-rapl:*/energy_uj: no zone's energy can be read")
        yield from samples

    def _find(self) -> Iterator[Device]:
        zones = [name for name in names_in(self._folder) if ZONE.fullmatch(name)]
        names = {zone: text_in(f"{self._folder}/{zone}/name", self.files) or zone for zone in zones}
        seen: set[str] = set()
        for zone in zones:
            parent = names.get(zone.rpartition(":")[0])
            name = f"{parent}/{names[zone]}" if parent else names[zone]
            name = f"{name} ({zone})" if name in seen else name
            seen.add(name)
            yield Device(name, ((ENERGY, f"{self._folder}/{zone}/energy_uj"),), self._facts(f"{self._folder}/{zone}"))

    def _facts(self, zone: str) -> dict[str, Scalar]:
        facts: dict[str, Scalar] = {RANGE.name: number_in(f"{zone}/max_energy_range_uj", self.files)}
        for place in range(len(LIMITS)):
            name = text_in(f"{zone}/constraint_{place}_name", self.files)
            if name in LIMITS:
                facts[LIMITS[name].name] = number_in(f"{zone}/constraint_{place}_power_limit_uw", self.files)
        return {name: value for name, value in facts.items() if value is not None}


SOURCE = Source(
    "rapl",
    lambda host, _: RaplCollector(host.sysfs, host.files),
    advice="load intel_rapl_msr, and let the agent read energy_uj, which the kernel keeps for root since CVE-2020-8694:"
    " give it CAP_DAC_READ_SEARCH, or a udev rule that changes the file's group and mode",
)
