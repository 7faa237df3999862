import shutil
from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.ingest.collectors import made
from crosswind.ingest.collectors.hwmon import HWMON, SOURCE, HwmonCollector
from crosswind.ingest.collectors.source import Host, Options

RECORDED = recorded_tree("two_sockets") / "sys"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "sys", symlinks=True))


def test_each_channel_is_a_device_by_chip_place_and_label_in_base_units() -> None:
    rows = {sample.device: HWMON.convert(sample) for sample in HwmonCollector(RECORDED).read()}
    assert rows == {
        "power_meter/ACPI000D:00/power1": {"chip": "power_meter", "average_power_watts": pytest.approx(412.0)},
        "nvme/0000:03:00.0/Composite": {"chip": "nvme", "temperature_celsius": pytest.approx(38.85)},
        "coretemp/coretemp.0/Package id 0": {"chip": "coretemp", "temperature_celsius": pytest.approx(61.0)},
        "coretemp/coretemp.0/Core 0": {"chip": "coretemp", "temperature_celsius": pytest.approx(58.0)},
        "coretemp/coretemp.0/Core 1": {"chip": "coretemp", "temperature_celsius": pytest.approx(61.0)},
        "nct6779/nct6775.656/fan1": {"chip": "nct6779", "fan_rpm": 8460},
        "nct6779/nct6775.656/in0": {"chip": "nct6779", "voltage_volts": pytest.approx(0.888)},
        "nct6779/nct6775.656/in2": {"chip": "nct6779", "voltage_volts": pytest.approx(3.344)},
        "nct6779/nct6775.656/SYSTIN": {"chip": "nct6779", "temperature_celsius": pytest.approx(33.0)},
        "nct6779/nct6775.656/PCH_CHIP_TEMP (temp7)": {"chip": "nct6779", "temperature_celsius": pytest.approx(34.5)},
        "nct6779/nct6775.656/PCH_CHIP_TEMP (temp8)": {"chip": "nct6779", "temperature_celsius": 0.0},
        "pmbus/0-0058/vin": {"chip": "pmbus", "voltage_volts": pytest.approx(230.5)},
        "pmbus/0-0058/iin": {"chip": "pmbus", "current_amperes": pytest.approx(1.844)},
        "pmbus/0-0058/pin": {"chip": "pmbus", "power_watts": pytest.approx(424.0)},
        "amd_energy/amd_energy.0/Ecore000": {"chip": "amd_energy", "energy_joules_total": pytest.approx(48391.763142)},
        "amd_energy/amd_energy.0/Esocket0": {"chip": "amd_energy", "energy_joules_total": pytest.approx(912837.465518)},
        "sht3x/0-0044/temp1": {"chip": "sht3x", "temperature_celsius": pytest.approx(24.31)},
        "sht3x/0-0044/humidity1": {"chip": "sht3x", "humidity_ratio": pytest.approx(0.4125)},
    }


def test_a_chip_with_another_number_after_a_boot_is_the_same_device(sysfs: Path) -> None:
    before = {sample.device for sample in HwmonCollector(sysfs).read()}
    (sysfs / "class/hwmon/hwmon2").rename(sysfs / "class/hwmon/hwmon9")
    assert {sample.device for sample in HwmonCollector(sysfs).read()} == before


def test_a_sensor_that_the_chip_calls_faulty_is_left_out() -> None:
    assert not any("AUXTIN0" in sample.device for sample in HwmonCollector(RECORDED).read())


def test_disks_are_left_alone_unless_requested() -> None:
    collector = made(SOURCE, Host(RECORDED.parent), Options("hwmon", {"without": ["nct6779", "amd_energy"]}))
    chips = {sample.values["chip"] for sample in collector.read()}
    assert chips == {"power_meter", "nvme", "coretemp", "pmbus", "sht3x", "drivetemp"}


def test_another_chip_that_takes_the_number_of_one_unplugged_is_never_taken_for_it(sysfs: Path) -> None:
    collector = HwmonCollector(sysfs)
    assert any(sample.device == "sht3x/0-0044/temp1" for sample in collector.read())
    (sysfs / "class/hwmon/hwmon6").unlink()
    shutil.rmtree(sysfs / "devices/pci0000:00/0000:00:1f.4/i2c-0/0-0044")
    (sysfs / "class/hwmon/hwmon6").symlink_to(sysfs / "class/hwmon/hwmon7", target_is_directory=True)
    assert not any(sample.device.startswith("sht3x") for sample in collector.read())


@pytest.mark.parametrize("label", ["", "x" * 201, "\x1b[31m", "a\nb"])
def test_a_label_that_cannot_be_shown_gives_way_to_the_channel(sysfs: Path, label: str) -> None:
    (sysfs / "class/hwmon/hwmon1/temp1_label").write_text(f"{label}\n")
    assert any(sample.device == "nvme/0000:03:00.0/temp1" for sample in HwmonCollector(sysfs).read())
