"""Temperatures of the kernel's thermal zones."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, MetricSet, Sample
from crosswind.ingest.collectors.devices import Device, DeviceList, text_in
from crosswind.ingest.collectors.listing import names_in
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles

TEMPERATURE = Column("temperature_celsius", "temperature", unit="celsius", scale=1e-3)
THERMAL = MetricSet("thermal", "thermal zones; the device is type/zone, as x86_pkg_temp/thermal_zone2", (TEMPERATURE,))


@dataclass(frozen=True)
class ThermalCollector:
    """Millidegrees of each zone.

    Source: Documentation/driver-api/thermal/sysfs-api.rst
    """

    sysfs: Path = Path("/sys")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = THERMAL
    _zones: DeviceList = field(default_factory=DeviceList, init=False, repr=False, compare=False)

    @property
    def _folder(self) -> str:
        return f"{self.sysfs}/class/thermal"

    def available(self) -> bool:
        """Return whether there is a zone."""
        try:
            return any(self._find())
        except UnavailableError:
            return False

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every zone. Raises: UnavailableError."""
        samples = self._zones.samples(self._find, self.files)
        if not samples:
            raise UnavailableError(f"{self._folder}/thermal_zone*/temp: no zone shows its temperature")
        yield from samples

    def _find(self) -> Iterator[Device]:
        for zone in names_in(self._folder):
            if zone.startswith("thermal_zone"):
                kind = text_in(f"{self._folder}/{zone}/type", self.files) or "unnamed"
                yield Device(f"{kind}/{zone}", ((TEMPERATURE.name, f"{self._folder}/{zone}/temp"),))


SOURCE = Source(
    "thermal",
    lambda host, _: ThermalCollector(host.sysfs, host.files),
    advice="a machine whose firmware or processor has thermal zones; guests have none",
    interval_seconds=1.0,
    timeout_seconds=5.0,  # a zone may be a method of the firmware's
)
