from pathlib import Path
from typing import Any

import pytest
from tests.ingest.collectors.fake_nvml import (
    FIELDS,
    H100,
    LOST,
    MEMORY,
    NO_DRIVER,
    OTHER,
    PART,
    RECORDED,
    UUID,
    FakeNvml,
    library,
    recorded_gpu,
)

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import DTYPES, Kind, OnFull, Sample, Scalar
from crosswind.ingest.collectors.gpu_process import GpuProcessCollector
from crosswind.ingest.collectors.nvml import GPU, NvmlCollector
from crosswind.ingest.gpu.nvml_session import NvmlSession

SECOND = 1_000_000_000


class Now:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def collector(driver: FakeNvml, *, pcie: bool = False, sysfs: Path = Path("/missing")) -> NvmlCollector:
    return NvmlCollector(NvmlSession(library(driver)), sysfs=sysfs, pcie=pcie)


def values(driver: FakeNvml, *, pcie: bool = False) -> dict[str, Scalar]:
    [sample] = collector(driver, pcie=pcie).read()
    return dict(sample.values)


def test_a_gpu_is_named_by_its_uuid_with_raw_numbers() -> None:
    [sample] = collector(FakeNvml(H100)).read()
    assert sample.device == UUID
    assert dict(sample.values) == {
        "index": 0,
        "name": "NVIDIA H100 80GB HBM3",
        "pci_bus_id": "00000000:1B:00.0",
        "driver_version": "570.86.15",
        "energy_joules_total": 417_358_921_004,
        "instant_power_watts": 402_117,
        "memory_temperature_celsius": 61,
        "nvlink_transmit_bytes_total": 5_000_000_001,
        "nvlink_receive_bytes_total": 4_999_999_999,
        "ecc_corrected_total": 2,
        "ecc_uncorrected_total": 0,
        "ecc_corrected_lifetime_total": 12,
        "ecc_uncorrected_lifetime_total": 1,
        "remapped_rows_corrected_total": 1,
        "remapped_rows_uncorrected_total": 0,
        "remapping_pending": 1,
        "remapping_failed": 0,
        "pcie_replays_total": 7,
        "power_watts": 398_204,
        "power_limit_watts": 700_000,
        "utilization_ratio": 97,
        "memory_utilization_ratio": 41,
        "memory_total_bytes": 85_520_809_984,
        "memory_used_bytes": 71_940_702_208,
        "memory_free_bytes": 12_984_516_608,
        "memory_reserved_bytes": 595_591_168,
        "temperature_celsius": 54,
        "graphics_clock_hertz": 1980,
        "sm_clock_hertz": 1965,
        "memory_clock_hertz": 2619,
        "performance_state": 0,
        "clocks_event_reasons": 4,
        "throttle_power_seconds_total": 81_000_000_000,
        "throttle_thermal_seconds_total": 0,
        "throttle_sync_boost_seconds_total": 0,
        "throttle_board_limit_seconds_total": 0,
        "throttle_low_utilization_seconds_total": 4_900_000,
        "throttle_reliability_seconds_total": 0,
    }


def test_numbers_become_base_units() -> None:
    [sample] = collector(FakeNvml(H100)).read()
    shown = GPU.convert(sample)
    assert shown["energy_joules_total"] == pytest.approx(417_358_921.004)
    assert shown["power_watts"] == pytest.approx(398.204)
    assert shown["utilization_ratio"] == pytest.approx(0.97)
    assert shown["sm_clock_hertz"] == 1_965_000_000
    assert shown["nvlink_transmit_bytes_total"] == 5_000_000_001 * 1024
    assert shown["throttle_power_seconds_total"] == pytest.approx(81.0)


def test_every_value_has_its_columns_type() -> None:
    fanned = H100 | {"nvmlDeviceGetFanSpeed": 30}
    shown = values(FakeNvml(fanned), pcie=True)
    assert {name for name, value in shown.items() if type(value) not in DTYPES[GPU[name].dtype]} == set()
    assert {column.name for column in GPU.columns} - shown.keys() == {"parent", "mig_instance", "driver_epoch"}


def test_no_counter_of_a_gpu_is_taken_to_wrap() -> None:
    """A reset GPU counts from zero; 2 ** 64 millijoules more would be nonsense."""
    assert {column.on_full for column in GPU.columns if column.kind is Kind.COUNTER} == {OnFull.RESET}


def test_the_drivers_load_is_an_epoch(tmp_path: Path) -> None:
    (tmp_path / "module" / "nvidia").mkdir(parents=True)
    [sample] = collector(FakeNvml(H100), sysfs=tmp_path).read()
    assert sample.values["driver_epoch"] == (tmp_path / "module" / "nvidia").stat().st_ino


def test_pcie_is_read_only_where_wanted() -> None:
    driver = FakeNvml(H100)
    assert "pcie_transmit_bytes_per_second" not in values(driver)
    assert driver.calls["nvmlDeviceGetPcieThroughput"] == 0
    shown = values(FakeNvml(H100), pcie=True)
    assert (shown["pcie_transmit_bytes_per_second"], shown["pcie_receive_bytes_per_second"]) == (12_345, 54_321)


def test_what_a_model_does_not_know_is_missing_and_tried_again_after_a_minute() -> None:
    driver, now = FakeNvml(H100), Now()
    watched = NvmlCollector(NvmlSession(library(driver), now))
    for _ in range(10):
        [sample] = watched.read()
        assert "fan_speed_ratio" not in sample.values
    assert driver.calls["nvmlDeviceGetFanSpeed"] == 1
    driver.gpus[0] = H100 | {"nvmlDeviceGetFanSpeed": 30}
    now.ns = 61 * SECOND
    [sample] = watched.read()
    assert sample.values["fan_speed_ratio"] == 30


def test_what_a_field_has_answered_is_not_asked_again_by_a_dearer_call() -> None:
    driver = FakeNvml(H100)
    values(driver)
    assert driver.calls["nvmlDeviceGetViolationStatus"] == 0
    old = FakeNvml(H100 | {"fields": {number: FIELDS[number] for number in FIELDS if not 74 <= number <= 79}})
    assert values(old)["throttle_power_seconds_total"] == 81_000_000_123
    assert old.calls["nvmlDeviceGetViolationStatus"] == 6


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_a_recorded_h100_fills_every_column_that_it_filled_when_it_was_read(state: str) -> None:
    seen = values(FakeNvml(recorded_gpu(state, *RECORDED["throttle_fields"]), driver=RECORDED["driver"]))
    sample = RECORDED[state]["sample"]
    assert seen.keys() == sample.keys()
    steady = ("name", "pci_bus_id", "driver_version", "power_limit_watts", "memory_total_bytes", "memory_used_bytes")
    assert [seen[name] for name in steady] == [sample[name] for name in steady]


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_a_recorded_sample_says_what_nvidia_smi_said_at_that_moment(state: str) -> None:
    sample, said = GPU.convert(Sample(UUID, RECORDED[state]["sample"])), RECORDED[state]["nvidia_smi"]
    for name, column, unit in [
        ("power.draw", "power_watts", 1),
        ("power.draw.instant", "instant_power_watts", 1),
        ("enforced.power.limit", "power_limit_watts", 1),
        ("utilization.gpu", "utilization_ratio", 0.01),
        ("utilization.memory", "memory_utilization_ratio", 0.01),
        ("temperature.gpu", "temperature_celsius", 1),
        ("temperature.memory", "memory_temperature_celsius", 1),
        ("clocks.gr", "graphics_clock_hertz", 1e6),
        ("clocks.sm", "sm_clock_hertz", 1e6),
        ("clocks.mem", "memory_clock_hertz", 1e6),
        ("ecc.errors.corrected.volatile.total", "ecc_corrected_total", 1),
        ("ecc.errors.uncorrected.aggregate.total", "ecc_uncorrected_lifetime_total", 1),
    ]:
        assert sample[column] == pytest.approx(float(said[name].split()[0]) * unit, rel=1e-4), name
    for part in ("total", "used", "free", "reserved"):  # in whole MiB, rounded up or down
        assert sample[f"memory_{part}_bytes"] == pytest.approx(_mebibytes(said[f"memory.{part}"]), abs=2**20)
    assert sample["clocks_event_reasons"] == int(said["clocks_event_reasons.active"], 16)
    assert said["pstate"] == f"P{sample['performance_state']}"
    capped = float(said["clocks_event_reasons_counters.sw_power_cap"].split()[0]) / 1e6
    assert sample["throttle_power_seconds_total"] == pytest.approx(capped, abs=0.2)  # it counts while it is read


def _mebibytes(text: str) -> int:
    number, unit = text.split()
    assert unit == "MiB"
    return int(number) * 2**20


def test_a_field_that_is_not_supported_leaves_the_others() -> None:
    without = H100 | {"fields": {key: value for key, value in FIELDS.items() if key != 138}}
    shown = values(FakeNvml(without))
    assert "nvlink_transmit_bytes_total" not in shown
    assert shown["nvlink_receive_bytes_total"] == 4_999_999_999


def test_a_lost_gpu_is_absent_and_the_others_stay() -> None:
    driver = FakeNvml(dict(H100), H100 | {"nvmlDeviceGetUUID": OTHER.encode()})
    watched = collector(driver)
    assert [sample.device for sample in watched.read()] == [UUID, OTHER]
    driver.gpus[0]["code"] = LOST
    assert [sample.device for sample in watched.read()] == [OTHER]
    assert [sample.device for sample in watched.read()] == [OTHER]


def test_a_gpu_that_only_its_fields_call_lost_is_absent_too() -> None:
    driver = FakeNvml(H100 | {"field_code": LOST}, H100 | {"nvmlDeviceGetUUID": OTHER.encode()})
    assert [sample.device for sample in collector(driver).read()] == [OTHER]


def test_nvml_is_opened_anew_a_minute_after_a_loss_to_see_what_was_reset() -> None:
    driver, now = FakeNvml(dict(H100), H100 | {"nvmlDeviceGetUUID": OTHER.encode()}), Now()
    session = NvmlSession(library(driver), now)
    driver.gpus[0]["code"] = LOST
    for _ in range(3):
        assert [device.uuid for device in session.devices()] == [OTHER]
    assert driver.calls["nvmlInitWithFlags"] == 1
    del driver.gpus[0]["code"]
    now.ns = 61 * SECOND
    assert [device.uuid for device in session.devices()] == [UUID, OTHER]
    assert (driver.calls["nvmlShutdown"], driver.calls["nvmlInitWithFlags"]) == (1, 2)


def test_without_any_gpu_that_answers_the_source_is_down() -> None:
    with pytest.raises(UnavailableError, match="none of 1 GPUs"):
        list(collector(FakeNvml(H100 | {"code": LOST})).read())
    with pytest.raises(UnavailableError, match="none of 0 GPUs"):
        list(collector(FakeNvml()).read())


def test_without_driver_or_library_the_source_says_so() -> None:
    driver = FakeNvml(H100)
    driver.init = NO_DRIVER
    with pytest.raises(UnavailableError, match="Driver Not Loaded"):
        list(collector(driver).read())
    driver.init = 0
    assert list(collector(driver).read())


def test_without_the_driver_the_library_is_not_even_imported(tmp_path: Path) -> None:
    session = NvmlSession(proc=tmp_path)
    assert not NvmlCollector(session, tmp_path).available()
    with pytest.raises(UnavailableError, match="driver/nvidia/version"):
        list(NvmlCollector(session, tmp_path).read())
    assert session.library is None


@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="this node has NVIDIA's driver")
def test_where_the_c_library_is_missing_the_source_says_so(tmp_path: Path) -> None:
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15\n")
    with pytest.raises(UnavailableError, match="NVML: "):
        list(NvmlCollector(NvmlSession(proc=tmp_path), tmp_path).read())


def test_a_part_that_mig_made_reports_its_memory_alone() -> None:
    part = {
        "nvmlDeviceGetUUID": PART.encode(),
        "nvmlDeviceGetName": b"NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "nvmlDeviceGetGpuInstanceId": 9,
        "nvmlDeviceGetComputeInstanceId": 0,
        "nvmlDeviceGetMemoryInfo_v2": MEMORY | {"total": 10_200_547_328},
        "nvmlDeviceGetPowerUsage": 398_204,
        "fields": FIELDS,
    }
    whole, piece = collector(FakeNvml(H100, parts={0: [part]})).read()
    assert whole.device == UUID
    assert piece.device == PART
    assert (piece.values["parent"], piece.values["mig_instance"]) == (UUID, "9/0")
    assert piece.values["memory_total_bytes"] == 10_200_547_328
    assert {"energy_joules_total", "power_watts"}.isdisjoint(piece.values)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("nvmlDeviceGetUtilizationRates", {"gpu": 4_000_000_000, "memory": 101}),
        ("nvmlDeviceGetPerformanceState", 32),
        ("fields", dict.fromkeys(FIELDS, (0, 1.5))),
    ],
)
def test_an_answer_that_makes_no_sense_is_missing(call: str, answer: Any) -> None:
    missing = values(FakeNvml(H100)).keys() - values(FakeNvml(H100 | {call: answer})).keys()
    assert missing
    assert "energy_joules_total" in missing or call != "fields"


def test_hostile_names_are_made_fit_for_a_row_or_left_out() -> None:
    assert values(FakeNvml(H100 | {"nvmlDeviceGetName": b"GPU\n\x1b[31m"}))["name"] == r"GPU\n\x1b[31m"
    assert "name" not in values(FakeNvml(H100 | {"nvmlDeviceGetName": b"\xff\xfe"}))


def test_processes_are_named_by_gpu_and_pid() -> None:
    hidden = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE
    driver = FakeNvml(H100 | {"processes": [(4242, 1_073_741_824), (4243, hidden)]})
    processes = [
        (sample.device, dict(sample.values)) for sample in GpuProcessCollector(NvmlSession(library(driver))).read()
    ]
    assert processes == [(UUID, {"pid": 4242, "memory_used_bytes": 1_073_741_824}), (UUID, {"pid": 4243})]


def test_processes_of_a_divided_gpu_are_named_by_its_parts() -> None:
    part = {"nvmlDeviceGetUUID": PART.encode(), "processes": [(7, 5)]}
    driver = FakeNvml(H100 | {"processes": [(7, 5)]}, parts={0: [part]})
    devices = [sample.device for sample in GpuProcessCollector(NvmlSession(library(driver))).read()]
    assert devices == [PART]
