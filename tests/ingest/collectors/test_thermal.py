from tests.ingest.trees import recorded_tree

from crosswind.ingest.collectors.thermal import THERMAL, ThermalCollector

RECORDED = recorded_tree("two_sockets") / "sys"


def test_each_zone_shows_its_temperature_and_cooling_devices_are_none() -> None:
    rows = {
        sample.device: THERMAL.convert(sample)["temperature_celsius"] for sample in ThermalCollector(RECORDED).read()
    }
    assert rows == {
        "acpitz/thermal_zone0": 27.8,
        "x86_pkg_temp/thermal_zone1": 61.0,
        "x86_pkg_temp/thermal_zone2": 54.0,
    }
