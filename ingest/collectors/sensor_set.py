"""The set of sensors around the node: of its management controller, its rack and its building."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample, Scalar

MAX_TEXT = 200
LARGEST = 1e18  # larger than any sensor's reading


def _gauge(name: str, description: str, unit: str) -> Column:
    return Column(name, description, dtype="float64", unit=unit)


TEMPERATURE = _gauge("temperature_celsius", "temperature", "celsius")
HUMIDITY = _gauge("humidity_ratio", "relative humidity", "ratio")
RATIO = _gauge("reading_ratio", "a share of a whole, as a duty cycle, or a quotient, as PUE", "ratio")
POWER = _gauge("power_watts", "power", "watts")
ENERGY = Column(
    "energy_joules_total",
    "energy used",
    Kind.COUNTER,
    "float64",
    unit="joules",
    on_full=OnFull.RESET,
)
VOLTAGE = _gauge("voltage_volts", "voltage", "volts")
CURRENT = _gauge("current_amperes", "current", "amperes")
SPEED = _gauge("speed_rpm", "turns a minute of a fan or a pump", "rpm")
FLOW = _gauge("flow_liters_per_second", "flow of a liquid", "liters_per_second")
PRESSURE = _gauge("pressure_pascals", "pressure", "pascals")
HEALTH = Column("health", "what the source itself thinks of the reading, in its own words", Kind.FACT, "string")
MEASURED = Column("measured_ns", "when the source says that it measured, ns UTC; missing where it does not", Kind.FACT)
SKIPPED = Column(
    "skipped_lines_total",
    "lines of a gateway's file (the device) that gave no reading; health has the reason of the last one",
    Kind.COUNTER,
    on_full=OnFull.RESET,
)
SENSOR = MetricSet(
    "sensor",
    "sensors of the management controller, the rack and the building; the device is the sensor's name",
    (
        *(TEMPERATURE, HUMIDITY, RATIO, POWER, ENERGY, VOLTAGE, CURRENT, SPEED, FLOW, PRESSURE),
        *(HEALTH, MEASURED, SKIPPED),
    ),
)


@dataclass(frozen=True, slots=True)
class Unit:
    """The conversion of a reading into one of the set's columns: reading x scale + offset."""

    column: str
    scale: float = 1.0
    offset: float = 0.0


FAHRENHEIT = Unit(TEMPERATURE.name, 5 / 9, -160 / 9)
KELVIN = Unit(TEMPERATURE.name, 1.0, -273.15)


def readings(values: Mapping[Unit, object]) -> dict[str, Scalar]:
    """Return the columns in base units, without values that are no finite numbers."""
    return {
        unit.column: value * unit.scale + unit.offset
        for unit, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and is_possible(value)
    }


def is_possible(value: float) -> bool:
    """Return whether a sensor could have measured this: a finite number, and not a counter's all-ones."""
    return abs(value) <= LARGEST


def number_of(text: str) -> float | None:
    """Return a decimal number, if the text is one and nothing else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if is_possible(value) and "_" not in text else None


def sensor(name: str, values: Mapping[str, Scalar], *, health: object = None, measured_ns: int | None = None) -> Sample:
    """Return one sensor's row, without a health text that cannot be shown."""
    row = dict(values)
    if isinstance(health, str) and 0 < len(health) <= MAX_TEXT and health.isprintable():
        row[HEALTH.name] = health
    if measured_ns is not None:
        row[MEASURED.name] = measured_ns
    return Sample(name, row)


def is_nameable(text: object) -> bool:
    """Return whether this text can be a sensor's name."""
    return isinstance(text, str) and 0 < len(text) <= MAX_TEXT and text.isprintable()


@dataclass(frozen=True)
class NotConfigured:
    """A source of sensors while its settings name no address."""

    option: str
    metric_set: ClassVar[MetricSet] = SENSOR

    def available(self) -> bool:
        """Return False."""
        return False

    def read(self) -> Iterator[Sample]:
        """Yield nothing. Raises: UnavailableError."""
        raise UnavailableError(f"{self.option}: not set")
