import math

import pytest

from crosswind.ingest.collectors.sensor_set import FAHRENHEIT, KELVIN, Unit, number_of, readings, sensor


def test_a_reading_becomes_its_column_in_the_base_unit() -> None:
    assert readings({Unit("humidity_ratio", 0.01): 41}) == {"humidity_ratio": pytest.approx(0.41)}
    assert readings({FAHRENHEIT: 212.0}) == {"temperature_celsius": pytest.approx(100.0)}
    assert readings({KELVIN: 0}) == {"temperature_celsius": pytest.approx(-273.15)}


@pytest.mark.parametrize("value", [None, True, "41", math.nan, math.inf, -math.inf, 2**64 - 1, [], {}])
def test_what_no_sensor_measures_is_left_out(value: object) -> None:
    assert readings({Unit("power_watts"): value}) == {}


def test_texts_are_numbers_only_as_a_whole() -> None:
    texts = ["11.97", "-4", "0x01", "1_000", "nan", "inf", "", "12 V", "1e3"]
    assert [number_of(text) for text in texts] == [11.97, -4.0, None, None, None, None, None, None, 1000.0]


@pytest.mark.parametrize("health", [None, "", "x" * 201, "\x1b[2J", 7])
def test_a_health_that_cannot_be_shown_is_left_out(health: object) -> None:
    assert dict(sensor("fan", {"speed_rpm": 8400.0}, health=health).values) == {"speed_rpm": 8400.0}
