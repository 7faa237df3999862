"""Sensors of a Redfish service: the controller of a node, a rack, a power strip or a cooling unit."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar
from urllib.parse import unquote

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.metric import Collector, MetricSet, Sample, Scalar
from crosswind.ingest.collectors import sensor_set
from crosswind.ingest.collectors.redfish_client import Access, RedfishClient, RefusedError, Resource
from crosswind.ingest.collectors.sensor_set import SENSOR, NotConfigured, Unit, is_nameable, readings, sensor
from crosswind.ingest.collectors.source import Host, Options, Source

CHASSIS = "/redfish/v1/Chassis"
MAX_MEMBERS = 500  # of a collection
KILOWATT_HOUR = 3.6e6
CELSIUS, WATTS = Unit(sensor_set.TEMPERATURE.name), Unit(sensor_set.POWER.name)
JOULES, PERCENT = Unit(sensor_set.ENERGY.name), Unit(sensor_set.RATIO.name, 0.01)
VOLTS, AMPERES, RPM = (Unit(column.name) for column in (sensor_set.VOLTAGE, sensor_set.CURRENT, sensor_set.SPEED))
PASCALS, LITERS = Unit(sensor_set.PRESSURE.name), Unit(sensor_set.FLOW.name)
HUMIDITY = Unit(sensor_set.HUMIDITY.name, 0.01)
# By ReadingType: the ReadingUnits, in UCUM, that must be there if there are any.
TYPES: Mapping[str, tuple[tuple[str, ...], Unit]] = {
    "Temperature": (("Cel",), CELSIUS),
    "Humidity": (("%",), HUMIDITY),
    "Percent": (("%",), PERCENT),
    "Power": (("W",), WATTS),
    "EnergyJoules": (("J",), JOULES),
    "EnergyWh": (("W.h",), Unit(JOULES.column, 3600.0)),
    "EnergykWh": (("kW.h",), Unit(JOULES.column, KILOWATT_HOUR)),
    "Voltage": (("V",), VOLTS),
    "Current": (("A",), AMPERES),
    "Rotational": (("RPM", "{rev}/min"), RPM),
    "LiquidFlow": (("L/s",), LITERS),
    "LiquidFlowLPM": (("L/min",), Unit(LITERS.column, 1 / 60)),
    "PressurePa": (("Pa",), PASCALS),
    "PressurekPa": (("kPa",), Unit(PASCALS.column, 1000.0)),
}
ENVIRONMENT = {
    "TemperatureCelsius": CELSIUS,
    "HumidityPercent": HUMIDITY,
    "PowerWatts": WATTS,
    "EnergykWh": Unit(JOULES.column, KILOWATT_HOUR),
    "EnergyJoules": JOULES,  # the finer one, if there are both
    "CurrentAmps": AMPERES,
    "Voltage": VOLTS,
}
# Of services older than sensors: resource, array, property, unit.
OLDER = (
    ("Power", "PowerControl", "PowerConsumedWatts", WATTS),
    ("Power", "PowerSupplies", "PowerInputWatts", WATTS),
    ("Power", "Voltages", "ReadingVolts", VOLTS),
    ("Thermal", "Temperatures", "ReadingCelsius", CELSIUS),
)
FAN_UNITS = {"RPM": RPM, "Percent": PERCENT}


@dataclass(frozen=True)
class RedfishCollector:
    """Every sensor of the chassis named, or of all: `chassis/sensor`, and `chassis` for its totals.

    PowerSubsystem and ThermalSubsystem hold excerpts of the same sensors, so they are not read. Of services older than
    sensors, Power and Thermal are read.

    Source: DMTF DSP0268, Redfish Data Model: Chassis, EnvironmentMetrics 1.5, Sensor 1.11, Power 1.7, Thermal 1.7
    """

    access: Access
    chassis: tuple[str, ...] = ()
    metric_set: ClassVar[MetricSet] = SENSOR
    _refused: list[Mapping[str, str]] = field(default_factory=list, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return True: the settings give the service's address; no request is sent."""
        return True

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every sensor. Raises: UnavailableError, MalformedError, InvalidInputError."""
        headers = self.access.headers()
        if headers in self._refused:  # further requests would lock the account
            raise RefusedError(f"{self.access.url}: refused this user and password; waits until they change")
        try:
            with RedfishClient(self.access, headers) as client:
                samples = [sample for path in self._paths(client) for sample in _chassis(client, path)]
        except RefusedError:
            self._refused[:] = [headers]
            raise
        if not samples:
            raise UnavailableError(f"{self.access.url}{CHASSIS}: no sensor reads")
        yield from _merged(samples)

    def _paths(self, client: RedfishClient) -> list[str]:
        if self.chassis:
            return [f"{CHASSIS}/{name}" for name in self.chassis]
        return list(_links(client.get(CHASSIS)))


def _chassis(client: RedfishClient, path: str) -> Iterator[Sample]:
    chassis = client.get(path) or {}
    name = unquote(path.rstrip("/").rpartition("/")[2])
    environment = _linked(client, chassis, "EnvironmentMetrics")
    totals = readings({unit: _reading(environment.get(key)) for key, unit in ENVIRONMENT.items() if key in environment})
    if totals and is_nameable(name):
        yield sensor(name, totals)
    if link := _link(chassis.get("Sensors")):
        yield from _sensors(client, name, link)
    else:
        yield from _older(client, name, chassis)


def _sensors(client: RedfishClient, chassis: str, link: str) -> Iterator[Sample]:
    """Yield all sensors: by one request if the service can expand a collection, else by one for each."""
    collection = client.get(f"{link}?$expand=.") or client.get(link) or {}
    for member in _objects(collection.get("Members"))[:MAX_MEMBERS]:
        path = _link(member)
        resource = member if "Reading" in member else (client.get(path) if path else None) or {}
        units, unit = TYPES.get(_text(resource, "ReadingType"), ((), None))
        if unit is not None and resource.get("ReadingUnits") in (*units, None):
            yield from _named(chassis, _text(resource, "Id"), resource, readings({unit: resource.get("Reading")}))


def _older(client: RedfishClient, chassis: str, parent: Resource) -> Iterator[Sample]:
    resources = {name: _linked(client, parent, name) for name in ("Power", "Thermal")}
    for resource, array, key, unit in OLDER:
        for name, item in _labelled(resources[resource].get(array)):
            yield from _named(chassis, name, item, readings({unit: item.get(key)}))
    for name, item in _labelled(resources["Thermal"].get("Fans")):
        fan_unit = FAN_UNITS.get(_text(item, "ReadingUnits"))
        if fan_unit:
            yield from _named(chassis, name, item, readings({fan_unit: item.get("Reading")}))


def _named(chassis: str, name: str, resource: Resource, values: Mapping[str, Scalar]) -> Iterator[Sample]:
    status = resource.get("Status")
    status = status if isinstance(status, dict) else {}
    device = f"{chassis}/{name}"
    # A sensor that is absent or switched off may still report its last reading.
    if values and name and is_nameable(device) and status.get("State") in ("Enabled", None):
        yield sensor(device, values, health=status.get("Health"), measured_ns=_instant(resource.get("ReadingTime")))


def _labelled(items: object) -> list[tuple[str, Resource]]:
    """Return the members of an array by name; if two have the same, by their number as well."""
    members = _objects(items)[:MAX_MEMBERS]
    names = Counter(_text(item, "Name") for item in members)
    return [
        (name if names[name] == 1 else f"{name} ({_text(item, 'MemberId')})", item)
        for item, name in ((item, _text(item, "Name")) for item in members)
    ]


def _merged(samples: list[Sample]) -> Iterator[Sample]:
    """Yield a sample for every device: a processor's temperature and its voltage may have one name."""
    rows: dict[str, dict[str, Scalar]] = {}
    for sample in samples:
        rows.setdefault(sample.device, {}).update(sample.values)
    yield from (Sample(device, values) for device, values in rows.items())


def _linked(client: RedfishClient, parent: Resource, name: str) -> Resource:
    link = _link(parent.get(name))
    return (client.get(link) if link else None) or {}


def _links(collection: Resource | None) -> Iterator[str]:
    members = _objects((collection or {}).get("Members"))
    yield from filter(None, map(_link, members[:MAX_MEMBERS]))


def _link(item: object) -> str | None:
    """Return the path of another resource of this service; None for anything else."""
    path = item.get("@odata.id") if isinstance(item, dict) else None
    if isinstance(path, str) and path.startswith("/redfish/") and len(path) < 1000 and _is_plain(path):
        return path
    return None


def _is_plain(path: str) -> bool:
    return path.isascii() and path.isprintable() and " " not in path and "#" not in path


def _objects(items: object) -> list[Resource]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _reading(excerpt: object) -> object:
    return excerpt.get("Reading") if isinstance(excerpt, dict) else None


def _text(resource: Resource, key: str) -> str:
    value = resource.get(key)
    return value if isinstance(value, str) else ""


def _instant(text: object) -> int | None:
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        return None
    return round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000) * 1000


def _make(_: Host, options: Options) -> Collector:
    url = options.text("url")
    if not url:
        return NotConfigured("sources.redfish.url")
    access = Access(url.rstrip("/"), options.text("user"), options.text("credential_file"), options.text("ca_file"))
    chassis = options.texts("chassis")
    if not all(name and all(char.isalnum() or char in "._-" for char in name) for name in chassis):
        raise InvalidInputError(f"sources.redfish.chassis: {list(chassis)!r:.200}, expected names of chassis")
    return RedfishCollector(access, chassis)


SOURCE = Source(
    "redfish",
    _make,
    advice='[sources.redfish] url = "https://HOST", user, credential_file (mode 0600, the password alone), ca_file,'
    " chassis",
    interval_seconds=60.0,
    timeout_seconds=30.0,
    is_default=False,
    options=("url", "user", "credential_file", "ca_file", "chassis"),
)
