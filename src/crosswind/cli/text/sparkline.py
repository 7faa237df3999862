"""A course in one line of a terminal."""

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
MISSING = " "


def sparkline(values: Sequence[float | None]) -> str:
    """Return a bar for each value, from the lowest to the highest; a blank where one is missing."""
    known_values = [value for value in values if value is not None]
    if not known_values:
        return MISSING * len(values)
    low, height = min(known_values), max(known_values) - min(known_values)
    return "".join(MISSING if value is None else BARS[_place(value - low, height)] for value in values)


def _place(above: float, height: float) -> int:
    return round(above / height * (len(BARS) - 1)) if height > 0 else 0
