"""Carbon dioxide of the electricity that runs took."""

import math
from dataclasses import dataclass
from enum import StrEnum

from crosswind.data.schema.errors import InvalidInputError

JOULES_PER_KILOWATT_HOUR = 3.6e6


class Origin(StrEnum):
    """The origin of a number of joules."""

    MEASURED = "measured"
    ESTIMATED = "estimated"


@dataclass(frozen=True)
class Energy:
    """Joules of a run, and whether a meter or a model says so."""

    joules: float
    origin: Origin

    def __post_init__(self) -> None:
        if not (math.isfinite(self.joules) and self.joules >= 0):
            raise InvalidInputError(f"joules is {self.joules}, expected a number from 0 on")

    @property
    def kilowatt_hours(self) -> float:
        """The same in kWh."""
        return self.joules / JOULES_PER_KILOWATT_HOUR

    def __add__(self, other: "Energy") -> "Energy":
        """The sum; estimated as soon as a part is."""
        both_measured = self.origin is Origin.MEASURED and other.origin is Origin.MEASURED
        return Energy(self.joules + other.joules, Origin.MEASURED if both_measured else Origin.ESTIMATED)


@dataclass(frozen=True)
class Carbon:
    """Grams of carbon dioxide equivalent, and whether the energy behind them was measured."""

    grams: float
    origin: Origin


@dataclass(frozen=True)
class CarbonIntensity:
    """Grams a kWh of the site's electricity, and what the building draws for each watt of the machine (PUE).

    Both are the site's to set: they differ by country, hour and contract, so there is no default intensity.
    """

    grams_per_kilowatt_hour: float
    power_usage_effectiveness: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.grams_per_kilowatt_hour) and self.grams_per_kilowatt_hour >= 0):
            raise InvalidInputError(
                f"grams_per_kilowatt_hour is {self.grams_per_kilowatt_hour}, expected a number from 0 on"
            )
        if not (math.isfinite(self.power_usage_effectiveness) and self.power_usage_effectiveness >= 1):
            raise InvalidInputError(
                f"power_usage_effectiveness is {self.power_usage_effectiveness}, expected a number from 1 on"
            )

    def of(self, energy: Energy) -> Carbon:
        """Return what that energy emitted."""
        grams = energy.kilowatt_hours * self.power_usage_effectiveness * self.grams_per_kilowatt_hour
        return Carbon(grams, energy.origin)
