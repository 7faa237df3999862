"""Not seen on hardware: names and types are those of amdsmi 7.0.2, values are plausible ones of an MI300X."""

from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import DTYPES, Kind, OnFull
from crosswind.ingest.collectors.amd_gpu import AMD_GPU, AmdGpuCollector
from crosswind.ingest.gpu.amd_session import AmdSession

NOT_SUPPORTED, API_FAILED, DRIVER_NOT_LOADED = 2, 7, 34
UUID = "8eff74a1-0000-1000-8000-a1b2c3d4e5f6"
METRICS: dict[str, Any] = {
    "temperature_edge": "N/A",
    "temperature_hotspot": 58,
    "temperature_mem": 47,
    "average_gfx_activity": 93,
    "average_umc_activity": 38,
    "average_socket_power": "N/A",
    "current_socket_power": 640,
    "current_gfxclk": 2092,
    "current_uclk": 1300,
    "pcie_replay_count_acc": 3,
    "accumulation_counter": 5_000_000,
    "prochot_residency_acc": 0,
    "ppt_residency_acc": 120_000,
    "socket_thm_residency_acc": 10,
    "vr_thm_residency_acc": 0,
    "hbm_thm_residency_acc": 0,
    "xgmi_read_data_acc": [100, 200, 300, 400, 500, 600, 700, "N/A"],
    "xgmi_write_data_acc": [1, 2, 3, 4, 5, 6, 7, "N/A"],
}
ENERGY = {"energy_accumulator": 123_456_789_012, "counter_resolution": 15.300000190734863, "timestamp": 1_700_000}


class MemoryType(IntEnum):
    VRAM = 0


class FakeError(Exception):
    """AmdSmiLibraryException, which all errors with a code are."""

    def __init__(self, code: int) -> None:
        super().__init__(f"Error code:\n\t{code}")
        self.err_code = code


class FakeAmdSmi:
    """The functions of amdsmi that are asked for, over answers by call."""

    AmdSmiException = FakeError
    AmdSmiMemoryType = MemoryType

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {
            "amdsmi_init": None,
            "amdsmi_shut_down": None,
            "amdsmi_get_processor_handles": ["handle"],
            "amdsmi_get_gpu_device_uuid": UUID,
            "amdsmi_get_gpu_device_bdf": "0000:05:00.0",
            "amdsmi_get_gpu_asic_info": {"market_name": "AMD Instinct MI300X"},
            "amdsmi_get_gpu_driver_info": {"driver_version": "6.12.12"},
            "amdsmi_get_gpu_metrics_info": METRICS,
            "amdsmi_get_energy_count": ENERGY,
            "amdsmi_get_gpu_memory_total": 206_141_652_992,
            "amdsmi_get_gpu_memory_usage": 150_000_000_000,
            "amdsmi_get_gpu_total_ecc_count": {
                "correctable_count": 4,
                "uncorrectable_count": 0,
                "deferred_count": 0,
            },
        } | answers
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name not in self.answers:
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            answer = self.answers[name]
            if isinstance(answer, FakeError):
                raise answer
            return answer

        return call


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    (tmp_path / "module" / "amdgpu").mkdir(parents=True)
    return tmp_path


def collector(sysfs: Path, **answers: Any) -> AmdGpuCollector:
    return AmdGpuCollector(AmdSession(FakeAmdSmi(**answers), sysfs), sysfs)


def test_a_gpu_is_named_by_its_uuid_with_raw_numbers(sysfs: Path) -> None:
    [sample] = collector(sysfs).read()
    assert sample.device == UUID
    assert dict(sample.values) == {
        "index": 0,
        "name": "AMD Instinct MI300X",
        "pci_bus_id": "0000:05:00.0",
        "driver_version": "6.12.12",
        "driver_epoch": (sysfs / "module/amdgpu").stat().st_ino,
        "energy_joules_total": 123_456_789_012,
        "energy_counted_ns": 1_700_000,
        "energy_resolution_joules": 15.300000190734863,
        "power_watts": 640,
        "utilization_ratio": 93,
        "memory_utilization_ratio": 38,
        "temperature_celsius": 58,
        "memory_temperature_celsius": 47,
        "graphics_clock_hertz": 2092,
        "memory_clock_hertz": 1300,
        "pcie_replays_total": 3,
        "accumulation_total": 5_000_000,
        "throttle_prochot_total": 0,
        "throttle_power_total": 120_000,
        "throttle_thermal_total": 10,
        "throttle_regulator_thermal_total": 0,
        "throttle_memory_thermal_total": 0,
        "xgmi_receive_bytes_total": 2800,
        "xgmi_transmit_bytes_total": 28,
        "memory_total_bytes": 206_141_652_992,
        "memory_used_bytes": 150_000_000_000,
        "ecc_corrected_total": 4,
        "ecc_uncorrected_total": 0,
        "ecc_deferred_total": 0,
    }


def test_every_value_has_its_columns_type_and_every_column_a_value(sysfs: Path) -> None:
    full = METRICS | {"temperature_edge": 50, "average_socket_power": 600}
    [sample] = collector(sysfs, amdsmi_get_gpu_metrics_info=full).read()
    assert sample.values.keys() == {column.name for column in AMD_GPU.columns}
    wrong = {name for name, value in sample.values.items() if type(value) not in DTYPES[AMD_GPU[name].dtype]}
    assert wrong == set()


def test_a_count_of_energy_is_two_to_the_minus_sixteen_joules(sysfs: Path) -> None:
    [sample] = collector(sysfs).read()
    assert AMD_GPU.convert(sample)["energy_joules_total"] == 123_456_789_012 / 65536


def test_energy_of_another_resolution_is_left_out_but_reported(sysfs: Path) -> None:
    [sample] = collector(sysfs, amdsmi_get_energy_count=ENERGY | {"counter_resolution": 1.0}).read()
    assert "energy_joules_total" not in sample.values
    assert sample.values["energy_resolution_joules"] == 1.0


def test_no_counter_of_a_gpu_is_taken_to_wrap() -> None:
    assert {column.on_full for column in AMD_GPU.columns if column.kind is Kind.COUNTER} == {OnFull.RESET}


def test_what_is_not_supported_is_missing_and_not_tried_again_soon(sysfs: Path) -> None:
    watched = collector(sysfs, amdsmi_get_energy_count=FakeError(NOT_SUPPORTED))
    for _ in range(5):
        [sample] = watched.read()
        assert "energy_joules_total" not in sample.values
    assert watched.session.library.calls.count("amdsmi_get_energy_count") == 1


def test_a_gpu_that_answers_nothing_is_absent(sysfs: Path) -> None:
    failing = dict.fromkeys(
        (
            "amdsmi_get_gpu_metrics_info",
            "amdsmi_get_energy_count",
            "amdsmi_get_gpu_memory_total",
            "amdsmi_get_gpu_memory_usage",
            "amdsmi_get_gpu_total_ecc_count",
        ),
        FakeError(API_FAILED),
    )
    with pytest.raises(UnavailableError, match="no GPU answers"):
        list(collector(sysfs, **failing).read())


def test_partitions_that_share_a_uuid_are_distinguished(sysfs: Path) -> None:
    devices = [sample.device for sample in collector(sysfs, amdsmi_get_processor_handles=["a", "b"]).read()]
    assert devices == [UUID, f"{UUID}/0000:05:00.0"]


def test_a_driver_that_is_unloaded_closes_the_session(sysfs: Path) -> None:
    watched = collector(sysfs)
    assert list(watched.read())
    watched.session.library.answers["amdsmi_get_energy_count"] = FakeError(DRIVER_NOT_LOADED)
    with pytest.raises(UnavailableError, match="34"):
        list(watched.read())
    assert "amdsmi_shut_down" in watched.session.library.calls


def test_without_the_driver_the_library_is_not_even_imported(tmp_path: Path) -> None:
    assert not AmdGpuCollector(sysfs=tmp_path).available()
    with pytest.raises(UnavailableError, match="module/amdgpu"):
        list(AmdGpuCollector(AmdSession(sysfs=tmp_path)).read())
