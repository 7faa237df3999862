"""Units that the names of parameters and written values end in: `bucket_mib`, `25 MiB`.

Sources: IEC 80000-13 (KiB = 1024 bytes), BIPM, The International System of Units. `kb`, `mb` and `gb` mean 1000^n bytes
to some and 1024^n to others, so they convert to nothing but themselves.
"""

import math
import re
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit: its dimension, and its size in the smallest one of that."""

    dimension: str
    size: float


UNITS: dict[str, Unit] = {
    "bytes": Unit("data", 1),
    "kib": Unit("data", 2**10),
    "mib": Unit("data", 2**20),
    "gib": Unit("data", 2**30),
    "kb": Unit("kb", 1),
    "mb": Unit("mb", 1),
    "gb": Unit("gb", 1),
    "us": Unit("time", 1e-6),
    "ms": Unit("time", 1e-3),
    "seconds": Unit("time", 1),
    "minutes": Unit("time", 60),
    "hours": Unit("time", 3600),
    "watts": Unit("power", 1),
    "kilowatts": Unit("power", 1000),
    "hertz": Unit("frequency", 1),
    "khz": Unit("frequency", 1e3),
    "mhz": Unit("frequency", 1e6),
    "ghz": Unit("frequency", 1e9),
    "ratio": Unit("share", 1),
    "percent": Unit("share", 0.01),
}
WRITTEN = {"b": "bytes", "s": "seconds", "min": "minutes", "h": "hours", "w": "watts", "kw": "kilowatts", "hz": "hertz"}
WRITTEN |= {"%": "percent"}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_WITH_UNIT = re.compile(rf"({_NUMBER})\s*([A-Za-z%]*)")


def split_name(name: str) -> tuple[str, str | None]:
    """Return a parameter's name without its unit, and the unit: `bucket_mib` is bucket in mib; None without one."""
    stem, _, last = name.rpartition("_")
    return (stem, last.lower()) if stem and last.lower() in UNITS else (name, None)


def converted(value: float, unit: str, to: str) -> float | None:
    """Return the value in another unit; None between dimensions, and for units of unknown size."""
    if unit == to:
        return value
    one, other = UNITS[unit], UNITS[to]
    return value * one.size / other.size if one.dimension == other.dimension else None


def number_in(text: str, unit: str | None) -> float | None:
    """Return the number in a text, in this unit; None where it is no number, or in a unit that does not convert.

    A number without a unit counts as in the wanted one.
    """
    match = _WITH_UNIT.fullmatch(text.strip())
    if not match:
        return None
    number, written = float(match[1]), WRITTEN.get(match[2].lower(), match[2].lower())
    if not math.isfinite(number) or not written:
        return number if math.isfinite(number) else None
    return converted(number, written, unit) if unit and written in UNITS else None
