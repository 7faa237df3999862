"""Units in the files of building gateways, and the column of the sensor set for each."""

from collections.abc import Mapping

from crosswind.ingest.collectors import sensor_set
from crosswind.ingest.collectors.sensor_set import FAHRENHEIT, KELVIN, Unit

CELSIUS = Unit(sensor_set.TEMPERATURE.name)


def _scaled(column: str, **scales: float) -> dict[str, Unit]:
    return {name: Unit(column, scale) for name, scale in scales.items()}


# Upper and lower case differ: mW is no MW. `%` alone may be anything; humidity is written %RH.
UNITS: Mapping[str, Unit] = {
    **dict.fromkeys(("C", "°C", "degC", "Cel", "celsius"), CELSIUS),
    **dict.fromkeys(("F", "°F", "degF"), FAHRENHEIT),
    "K": KELVIN,
    **dict.fromkeys(("%RH", "%rh"), Unit(sensor_set.HUMIDITY.name, 0.01)),
    "%": Unit(sensor_set.RATIO.name, 0.01),
    "1": Unit(sensor_set.RATIO.name),
    **_scaled(sensor_set.POWER.name, mW=1e-3, W=1.0, kW=1e3, MW=1e6),
    **_scaled(sensor_set.ENERGY.name, J=1.0, kJ=1e3, MJ=1e6, GJ=1e9, Wh=3600.0, kWh=3.6e6, MWh=3.6e9),
    **_scaled(sensor_set.VOLTAGE.name, mV=1e-3, V=1.0, kV=1e3),
    **_scaled(sensor_set.CURRENT.name, mA=1e-3, A=1.0, kA=1e3),
    **_scaled(sensor_set.SPEED.name, rpm=1.0, RPM=1.0),
    **_scaled(sensor_set.PRESSURE.name, Pa=1.0, hPa=100.0, mbar=100.0, kPa=1e3, bar=1e5, MPa=1e6, psi=6894.757293168),
    **dict.fromkeys(("l/s", "L/s"), Unit(sensor_set.FLOW.name)),
    **dict.fromkeys(("l/min", "L/min"), Unit(sensor_set.FLOW.name, 1 / 60)),
    **dict.fromkeys(("l/h", "L/h"), Unit(sensor_set.FLOW.name, 1 / 3600)),
    **dict.fromkeys(("m3/h", "m³/h"), Unit(sensor_set.FLOW.name, 1 / 3.6)),
    **dict.fromkeys(("m3/s", "m³/s"), Unit(sensor_set.FLOW.name, 1000.0)),
}
