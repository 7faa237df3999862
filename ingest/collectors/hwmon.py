"""Hardware monitoring chips: temperatures, fans, voltages, currents, powers and energies."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample
from crosswind.ingest.collectors.devices import Device, DeviceList, number_in, text_in
from crosswind.ingest.collectors.listing import names_in
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles

MILLI, MICRO = 1e-3, 1e-6
CHANNELS = {  # by the kind of channel and the end of the file's name
    ("temp", "input"): Column("temperature_celsius", "temperature", unit="celsius", scale=MILLI),
    ("fan", "input"): Column("fan_rpm", "turns of a fan a minute", unit="rpm"),
    ("in", "input"): Column(
        "voltage_volts", "at the chip's pin; many boards divide it before", unit="volts", scale=MILLI
    ),
    ("curr", "input"): Column("current_amperes", "current", unit="amperes", scale=MILLI),
    ("power", "input"): Column("power_watts", "power now", unit="watts", scale=MICRO),
    ("power", "average"): Column("average_power_watts", "power over the chip's own window", unit="watts", scale=MICRO),
    ("energy", "input"): Column(
        "energy_joules_total", "energy used", Kind.COUNTER, unit="joules", scale=MICRO, on_full=OnFull.RESET
    ),
    ("humidity", "input"): Column("humidity_ratio", "relative humidity", unit="ratio", scale=1e-5),
}
HWMON = MetricSet(
    "hwmon",
    "one channel of one chip a row; the device is chip/where the chip is/label, the same after every boot",
    (*CHANNELS.values(), Column("chip", "name of the chip's driver", Kind.FACT, "string")),
)
FILE = re.compile(r"((temp|fan|in|curr|power|energy|humidity)\d+)_(input|average)")
NVME = re.compile(r"/nvme/nvme\d+$")  # numbered in the order of discovery; where it is plugged in stays the same
WITHOUT = ("drivetemp",)  # reading a disk's temperature may keep it from spinning down


@dataclass(frozen=True)
class HwmonCollector:
    """Every channel of every chip, but for chips that the settings leave out.

    Source: Documentation/ABI/testing/sysfs-class-hwmon (millidegrees, millivolts, milliamperes, microwatts,
    microjoules, thousandths of a percent); Documentation/hwmon/drivetemp.rst
    """

    sysfs: Path = Path("/sys")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    without: tuple[str, ...] = WITHOUT
    metric_set: ClassVar[MetricSet] = HWMON
    _channels: DeviceList = field(default_factory=DeviceList, init=False, repr=False, compare=False)

    @property
    def _folder(self) -> str:
        return f"{self.sysfs}/class/hwmon"

    def available(self) -> bool:
        """Return whether there is a chip."""
        try:
            return bool(names_in(self._folder))
        except UnavailableError:
            return False

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every channel. Raises: UnavailableError."""
        samples = self._channels.samples(self._find, self.files)
        if not samples:
            raise UnavailableError(f"{self._folder}: no chip shows a number")
        yield from samples

    def _find(self) -> Iterator[Device]:
        seen: set[str] = set()
        for chip in names_in(self._folder):
            for device in self._channels_of(f"{self._folder}/{chip}"):
                if device.name not in seen:  # else two indistinguishable chips of one name at one place
                    seen.add(device.name)
                    yield device

    def _channels_of(self, chip: str) -> Iterator[Device]:
        # The resolved path: if another chip takes this number, its files are not taken for those of this one.
        folder = os.path.realpath(chip if os.path.exists(f"{chip}/name") else f"{chip}/device")  # noqa: PTH110 - names
        name = text_in(f"{folder}/name", self.files) or "unnamed"
        if name in self.without or not os.path.isdir(folder):  # noqa: PTH112 - it has just gone
            return
        place = NVME.sub("", os.path.realpath(f"{chip}/device")).rpartition("/")[2]
        channels = self._columns(folder)
        labels = {channel: text_in(f"{folder}/{channel}_label", self.files) or channel for channel in channels}
        for channel, files in channels.items():
            label = labels[channel]
            label = f"{label} ({channel})" if list(labels.values()).count(label) > 1 else label
            yield Device(f"{name}/{place}/{label}", tuple(files), {"chip": name})

    def _columns(self, folder: str) -> dict[str, list[tuple[str, str]]]:
        columns: dict[str, list[tuple[str, str]]] = {}
        for match in filter(None, map(FILE.fullmatch, names_in(folder))):
            column = CHANNELS.get((match[2], match[3]))
            if column and number_in(f"{folder}/{match[1]}_fault", self.files) != 1:
                columns.setdefault(match[1], []).append((column.name, f"{folder}/{match[0]}"))
        return columns


SOURCE = Source(
    "hwmon",
    lambda host, options: HwmonCollector(host.sysfs, host.files, options.texts("without", WITHOUT)),
    advice="load the drivers of the board's chips (sensors-detect of lm-sensors names them)",
    interval_seconds=1.0,
    timeout_seconds=5.0,  # a chip behind a slow bus takes milliseconds a channel
    options=("without",),
)
