"""Units that a map may name, and numbers in them as numbers in base units."""

from collections.abc import Mapping

TIMES: Mapping[str, int] = {  # in nanoseconds, so that times since 1970 stay exact
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
ENERGIES: Mapping[str, float] = {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "Wh": 3600.0, "kWh": 3.6e6, "MWh": 3.6e9}
POWERS: Mapping[str, float] = {"mW": 1e-3, "W": 1.0, "kW": 1e3, "MW": 1e6}
SPELLED: Mapping[str, str] = {
    **dict.fromkeys(("second", "seconds", "sec"), "s"),
    **dict.fromkeys(("millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("microsecond", "microseconds"), "us"),
    **dict.fromkeys(("nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("minute", "minutes"), "min"),
    **dict.fromkeys(("hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("joule", "joules"), "J"),
    **dict.fromkeys(("watt", "watts"), "W"),
}
SECOND_NS = 1_000_000_000


def nanoseconds(number: float, unit: str) -> int:
    """Return a time in nanoseconds; of a whole number exactly."""
    return round(number * TIMES[unit])


def seconds(number: float, unit: str) -> float:
    """Return a time in seconds."""
    return number * TIMES[unit] / SECOND_NS
