"""The metadata of families of series: their types and units."""

from collections.abc import Container
from dataclasses import dataclass, field

ENDS = ("_bucket", "_count", "_sum", "_total", "_created", "_info", "_gcount", "_gsum")  # that series add to a family
COUNTS = ("_bucket", "_count", "_gcount", "_created")  # these do not have the family's unit
CUMULATIVE = ("_bucket", "_count", "_sum")
KINDS = {"counter": "counter", "gauge": "gauge", "gaugehistogram": "gauge", "info": "gauge", "stateset": "gauge"}


@dataclass
class Families:
    """Types and units by family, as far as they are declared."""

    types: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def kind(self, name: str) -> str | None:
        """Return the kind of a series of this name, counter or gauge; None if its type is unknown."""
        family = _family(name, self.types)
        end = name.removeprefix(family or name)
        family_kind = self.types.get(family or "")
        if end == "_created":  # a time, next to the counter
            return "gauge"
        if family_kind in {"histogram", "summary"}:
            return "counter" if end in CUMULATIVE else "gauge"
        return KINDS.get(family_kind or "")

    def unit(self, name: str) -> str | None:
        """Return the unit of a series of this name; None if it is not declared, or the series counts something."""
        family = _family(name, self.units)
        if family is None or name.removeprefix(family) in COUNTS:
            return None
        return self.units[family] or None


def _family(name: str, names: Container[str]) -> str | None:
    if name in names:
        return name
    stems = (name.removesuffix(end) for end in ENDS if name.endswith(end))
    return next((stem for stem in stems if stem in names), None)
