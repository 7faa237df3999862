import shutil
from pathlib import Path

from tests.ingest.trees import recorded_tree

from crosswind.ingest.collectors.frequency import FREQUENCY, FrequencyCollector

RECORDED = recorded_tree("two_sockets") / "sys"


def test_a_core_shows_its_clock_and_how_long_heat_slowed_it_down() -> None:
    rows = {sample.device: FREQUENCY.convert(sample) for sample in FrequencyCollector(RECORDED).read()}
    assert list(rows) == ["cpu0", "package0", "cpu1", "cpu2", "package1", "cpu3"]
    assert rows["cpu0"] == {
        "frequency_hertz": 2893812000,
        "frequency_limit_hertz": 3900000000,
        "throttles_total": 7,
        "throttled_seconds_total": 1.25,
    }


def test_a_package_is_read_once_and_not_by_each_of_its_cores() -> None:
    rows = {sample.device: FREQUENCY.convert(sample) for sample in FrequencyCollector(RECORDED).read()}
    assert rows["package0"] == {"throttles_total": 31, "throttled_seconds_total": 5.3}
    assert rows["package1"] == {"throttles_total": 0, "throttled_seconds_total": 0.0}


def test_a_processor_that_counts_no_throttling_still_shows_its_clock(tmp_path: Path) -> None:
    sysfs = Path(shutil.copytree(RECORDED, tmp_path / "sys", symlinks=True))
    for folder in sysfs.glob("devices/system/cpu/cpu*/thermal_throttle"):
        shutil.rmtree(folder)
    rows = {sample.device: dict(sample.values) for sample in FrequencyCollector(sysfs).read()}
    assert rows["cpu3"] == {"frequency_hertz": 800000, "frequency_limit_hertz": 3900000}
    assert list(rows) == ["cpu0", "cpu1", "cpu2", "cpu3"]


def test_a_core_that_goes_offline_is_gone_at_once(tmp_path: Path) -> None:
    sysfs = Path(shutil.copytree(RECORDED, tmp_path / "sys", symlinks=True))
    collector = FrequencyCollector(sysfs)
    assert "cpu1" in [sample.device for sample in collector.read()]
    shutil.rmtree(sysfs / "devices/system/cpu/cpufreq/policy1")
    for file in (sysfs / "devices/system/cpu/cpu1/thermal_throttle").iterdir():
        file.write_bytes(b"")  # the kernel then answers with nothing
    assert "cpu1" not in [sample.device for sample in collector.read()]
