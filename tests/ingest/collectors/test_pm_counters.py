import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Kind
from crosswind.ingest.collectors.pm_counters import PM_COUNTERS, PmCountersCollector
from crosswind.ingest.kernel.kernel_files import KernelFiles

RECORDED = recorded_tree("cray_ex") / "sys"
FOLDER = "cray/pm_counters"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "sys"))


def test_node_cpu_memory_and_accelerator_are_devices() -> None:
    rows = {sample.device: dict(sample.values) for sample in PmCountersCollector(RECORDED).read()}
    of_all = {"controller_seconds": 7810213855886, "controller_startup": 1778580757634187}
    assert rows == {
        "accel0": {"energy_joules_total": 2869283299, "power_watts": 212, **of_all},
        "cpu": {"energy_joules_total": 1914263318, "power_watts": 118, **of_all},
        "cpu0": {"temperature_celsius": 41, **of_all},
        "memory": {"energy_joules_total": 902217840, "power_watts": 57, **of_all},
        "node": {
            "energy_joules_total": 12044825101,
            "power_watts": 724,
            "power_limit_watts": 2894,
            "scans_total": 60043284,
            "power_limit_changes_total": 16,
            "scan_rate_hertz": 10,
            **of_all,
        },
    }


def test_a_changed_power_limit_is_no_new_epoch_of_the_energy_and_a_new_controller_is_one() -> None:
    epochs = [column.name for column in PM_COUNTERS.columns if column.kind is Kind.EPOCH]
    assert epochs == ["controller_startup"]


@pytest.mark.parametrize("line", ["724 kW 7810213855886 us", "724", "-1 W 7810213855886 us", "", "724 W x us y", "N/A"])
def test_a_value_in_another_unit_or_form_is_left_out(sysfs: Path, line: str) -> None:
    (sysfs / FOLDER / "power").write_text(f"{line}\n")
    rows = {sample.device: sample.values for sample in PmCountersCollector(sysfs).read()}
    assert "power_watts" not in rows["node"]
    assert rows["node"]["energy_joules_total"] == 12044825101


def test_a_file_that_comes_later_is_found_and_one_that_is_gone_is_gone_at_once(sysfs: Path) -> None:
    collector = PmCountersCollector(sysfs)
    list(collector.read())
    (sysfs / FOLDER / "accel0_energy").unlink()
    (sysfs / FOLDER / "accel0_power").rename(sysfs / FOLDER / "accel1_power")
    assert {sample.device for sample in collector.read()} == {"cpu", "cpu0", "memory", "node"}
    assert {sample.device for sample in collector.read()} == {"accel1", "cpu", "cpu0", "memory", "node"}


class ControllerThatWrites(KernelFiles):
    """The kernel's files, where the controller writes again whenever the node's energy is looked at."""

    def __init__(self, folder: Path, energies: Iterator[int]) -> None:
        super().__init__()
        self._folder = folder
        self._energies = energies

    def read(self, path: str) -> bytes:
        if path.endswith("/energy") and (energy := next(self._energies, None)):
            (self._folder / "energy").write_text(f"{energy} J 7810213955886 us\n")
            (self._folder / "freshness").write_text(f"{energy}\n")
        return super().read(path)


def test_a_look_during_which_the_controller_wrote_is_taken_again(sysfs: Path) -> None:
    files = ControllerThatWrites(sysfs / FOLDER, iter([70, 71]))
    rows = {sample.device: sample.values for sample in PmCountersCollector(sysfs, files).read()}
    assert (rows["node"]["energy_joules_total"], rows["node"]["scans_total"]) == (71, 71)


def test_counters_that_never_stand_still_are_refused(sysfs: Path) -> None:
    files = ControllerThatWrites(sysfs / FOLDER, iter([70, 71, 72]))
    with pytest.raises(UnavailableError, match="pm_counters/freshness: changed during each of 3 looks"):
        list(PmCountersCollector(sysfs, files).read())
