"""Sensors of this node's management controller (BMC), read by ipmitool."""

import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import MetricSet, Sample
from crosswind.ingest.collectors import sensor_set
from crosswind.ingest.collectors.sensor_set import SENSOR, Unit, is_nameable, number_of, readings, sensor
from crosswind.ingest.collectors.source import Source

UNITS: Mapping[str, Unit] = {
    "degrees C": Unit(sensor_set.TEMPERATURE.name),
    "degrees F": sensor_set.FAHRENHEIT,
    "degrees K": sensor_set.KELVIN,
    "Watts": Unit(sensor_set.POWER.name),
    "Joules": Unit(sensor_set.ENERGY.name),
    "Volts": Unit(sensor_set.VOLTAGE.name),
    "Amps": Unit(sensor_set.CURRENT.name),
    "RPM": Unit(sensor_set.SPEED.name),
    "percent": Unit(sensor_set.RATIO.name, 0.01),
}
DEVICES = ("dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0")
SENSORS = ("sdr", "elist", "full")
POWER = ("dcmi", "power", "reading")
TIMEOUT_SECONDS = 20.0  # a controller takes tens of milliseconds a sensor, and may have hundreds
POWER_SECONDS = 4.0


@dataclass(frozen=True)
class IpmiCollector:
    """Every analogue sensor with a reading, and the power of the whole node by DCMI (device dcmi).

    Source: ipmitool(1); its tables as ipmitool 1.8.19 prints them
    """

    root: Path = Path("/")
    command: str = "ipmitool"
    sensors_seconds: float = TIMEOUT_SECONDS - POWER_SECONDS - 1.0
    metric_set: ClassVar[MetricSet] = SENSOR

    def available(self) -> bool:
        """Return whether there is a controller; it is not queried."""
        return any((self.root / device).exists() for device in DEVICES)

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every sensor. Raises: UnavailableError."""
        if not self.available():
            raise UnavailableError(f"{self.root / DEVICES[0]}: no such device")
        table, refusal = self._ask(SENSORS, self.sensors_seconds)
        samples = [*sensors_of(table), *power_of(self._ask(POWER, POWER_SECONDS)[0])]
        if not samples:
            raise UnavailableError(f"{self.command} {' '.join(SENSORS)}: no sensor reads: {refusal:.200}")
        yield from samples

    def _ask(self, question: Sequence[str], timeout_seconds: float) -> tuple[str, str]:
        """Return ipmitool's output and its errors; it prints what it could read even if it then fails."""
        try:
            answer = subprocess.run(
                [self.command, *question],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=timeout_seconds,
                check=False,
                env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
            )
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(
                f"{self.command} {' '.join(question)}: no answer within {timeout_seconds} s"
            ) from error
        except OSError as error:
            raise UnavailableError(f"{self.command}: {error.strerror}") from error
        complaint = answer.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        return answer.stdout.decode("utf-8", "replace"), complaint or f"exit code {answer.returncode}"


def sensors_of(table: str) -> Iterator[Sample]:
    """Yield the sensors with a reading in lines of `name | number | status | entity | reading`."""
    lines = [[field.strip() for field in line.rsplit("|", 4)] for line in table.splitlines()]
    rows = [fields for fields in lines if len(fields) == 5]
    names = Counter(fields[0] for fields in rows)
    for name, number, status, _, reading in rows:
        amount, _, unit = reading.partition(" ")
        value = number_of(amount)
        if unit in UNITS and value is not None and is_nameable(name):
            # Some boards call every processor's sensor `Temp`; the number is the board's own for each.
            device = name if names[name] == 1 else f"{name} ({number})"
            yield sensor(device, readings({UNITS[unit]: value}), health=status)


def power_of(report: str) -> Iterator[Sample]:
    """Yield the node's power, if the controller measures it: others report 0 W, or that it is deactivated."""
    fields = dict(line.strip().partition(":")[::2] for line in report.splitlines())
    amount, _, unit = fields.get("Instantaneous power reading", "").strip().partition(" ")
    value = number_of(amount)
    if value and unit == "Watts" and fields.get("Power reading state is", "").strip() == "activated":
        yield sensor("dcmi", readings({UNITS["Watts"]: value}))


SOURCE = Source(
    "ipmi",
    lambda host, options: IpmiCollector(host.root, options.text("command", "ipmitool")),
    advice="install ipmitool, load ipmi_devintf and ipmi_si, and let the agent open /dev/ipmi0, which is root's",
    interval_seconds=60.0,
    timeout_seconds=TIMEOUT_SECONDS,
    options=("command",),
)
