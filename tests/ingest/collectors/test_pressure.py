from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.collectors.pressure import PRESSURE, PressureCollector

RECORDED = recorded_tree("two_cores") / "proc"


def test_each_resource_is_a_device() -> None:
    assert [sample.device for sample in PressureCollector(RECORDED).read()] == ["cpu", "io", "memory"]


def test_microseconds_become_seconds() -> None:
    cpu, io, _ = PressureCollector(RECORDED).read()
    assert PRESSURE.convert(cpu)["waiting_seconds_total"] == pytest.approx(419.471585)
    assert PRESSURE.convert(io)["stalled_seconds_total"] == pytest.approx(5.30267)


def test_the_undefined_full_share_of_cpu_is_missing_and_not_zero() -> None:
    cpu, *_ = PressureCollector(RECORDED).read()
    assert "stalled_seconds_total" not in cpu.values


@pytest.mark.parametrize("text", ["", "some avg10=0.00\n", "some avg10=0.00 total=-1\n", "full total=1\n"])
def test_a_garbled_file_is_malformed(tmp_path: Path, text: str) -> None:
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "cpu").write_text(text)
    with pytest.raises(MalformedError, match="pressure/cpu"):
        list(PressureCollector(tmp_path).read())


def test_a_kernel_with_one_resource_only_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n")
    with pytest.raises(UnavailableError, match="pressure/io"):
        list(PressureCollector(tmp_path).read())
