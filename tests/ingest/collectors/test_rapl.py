import shutil
from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.collectors.rapl import RAPL, RaplCollector

RECORDED = recorded_tree("two_sockets") / "sys"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "sys", symlinks=True))


def test_each_zone_is_a_device_once_and_a_subzone_names_its_package() -> None:
    devices = [sample.device for sample in RaplCollector(RECORDED).read()]
    assert devices == ["package-0", "package-0/dram", "package-1", "package-1/dram", "psys"]


def test_energy_is_next_to_the_range_after_which_it_begins_anew() -> None:
    rows = {sample.device: sample for sample in RaplCollector(RECORDED).read()}
    assert dict(rows["package-0"].values) == {
        "energy_joules_total": 196428813147,
        "range_joules": 262143328850,
        "long_term_limit_watts": 205000000,
        "short_term_limit_watts": 246000000,
    }
    assert rows["package-0/dram"].values["range_joules"] == 65712999613
    assert rows["package-1"].values["peak_power_limit_watts"] == 410000000


def test_microjoules_become_joules() -> None:
    dram = {sample.device: sample for sample in RaplCollector(RECORDED).read()}["package-1/dram"]
    assert RAPL.convert(dram)["energy_joules_total"] == pytest.approx(7713.562041)


def test_zones_of_one_name_are_distinguished(sysfs: Path) -> None:
    (sysfs / "class/powercap/intel-rapl:2/name").write_text("package-0\n")
    assert [sample.device for sample in RaplCollector(sysfs).read()][-1] == "package-0 (intel-rapl:2)"


def test_energy_that_the_kernel_keeps_for_root_makes_the_source_unavailable(sysfs: Path) -> None:
    for energy in sysfs.glob("devices/virtual/powercap/intel-rapl/**/energy_uj"):
        energy.unlink()
        energy.mkdir()  # refused at every read, to root as well
    assert not RaplCollector(sysfs).available()
    with pytest.raises(UnavailableError, match=r"class/powercap/intel-rapl:\*/energy_uj"):
        list(RaplCollector(sysfs).read())


def test_a_zone_that_refuses_leaves_the_others(sysfs: Path) -> None:
    collector = RaplCollector(sysfs)
    assert len(list(collector.read())) == 5
    (sysfs / "class/powercap/intel-rapl:0:0/energy_uj").write_text("N/A\n")
    assert [sample.device for sample in collector.read()] == ["package-0", "package-1", "package-1/dram", "psys"]
    (sysfs / "class/powercap/intel-rapl:0:0/energy_uj").write_text("40319871400\n")
    assert len(list(collector.read())) == 5
