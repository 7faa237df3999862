"""Joules, kilowatt-hours and grams."""

import pytest

from crosswind.data.schema.carbon import CarbonIntensity, Energy, Origin
from crosswind.data.schema.errors import InvalidInputError

MEASURED = Energy(7.2e6, Origin.MEASURED)


def test_two_kilowatt_hours_at_400_grams_and_a_pue_of_a_quarter_more_are_a_kilogram() -> None:
    carbon = CarbonIntensity(400.0, power_usage_effectiveness=1.25).of(MEASURED)
    assert MEASURED.kilowatt_hours == 2.0
    assert carbon.grams == pytest.approx(1000.0)
    assert carbon.origin is Origin.MEASURED


def test_a_sum_is_measured_only_when_all_of_it_is() -> None:
    assert Energy(14.4e6, Origin.MEASURED) == (MEASURED + MEASURED)
    assert (MEASURED + Energy(1.0, Origin.ESTIMATED)).origin is Origin.ESTIMATED


@pytest.mark.parametrize("joules", [-1.0, float("nan"), float("inf")])
def test_energy_that_cannot_be_is_refused(joules: float) -> None:
    with pytest.raises(InvalidInputError, match="joules is"):
        Energy(joules, Origin.MEASURED)


def test_intensities_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"grams_per_kilowatt_hour is -1\.0"):
        CarbonIntensity(-1.0)
    with pytest.raises(InvalidInputError, match=r"power_usage_effectiveness is 0\.9"):
        CarbonIntensity(400.0, power_usage_effectiveness=0.9)
