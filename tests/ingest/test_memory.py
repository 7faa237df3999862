from pathlib import Path

import pytest

from crosswind.data.errors import MalformedError
from crosswind.ingest.collectors.memory import MEMORY, MemoryCollector

RECORDED = Path(__file__).parent / "recorded" / "two_cores" / "proc"


def test_a_kilobyte_has_1024_bytes() -> None:
    [node] = MemoryCollector(RECORDED).read()
    assert node.values["total_bytes"] == 24684084
    assert MEMORY.convert(node)["total_bytes"] == 24684084 * 1024


def test_events_come_from_vmstat() -> None:
    [node] = MemoryCollector(RECORDED).read()
    assert node.values["page_faults_total"] == 4158816
    assert node.values["major_page_faults_total"] == 2618
    assert node.values["oom_kills_total"] == 0
    assert MEMORY.convert(node)["paged_in_bytes_total"] == 2879373 * 1024


def test_allocated_pages_are_summed_over_the_zones(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\n")
    (tmp_path / "vmstat").write_text("pgalloc_dma 1\npgalloc_normal 20\npgalloc_movable 300\n")
    [node] = MemoryCollector(tmp_path).read()
    assert node.values["allocated_pages_total"] == 321


def test_what_the_kernel_does_not_tell_is_missing_and_not_zero(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nHugePages_Total: 5\n")
    [node] = MemoryCollector(tmp_path).read()
    assert dict(node.values) == {"total_bytes": 8}


@pytest.mark.parametrize(
    "text", ["", "garbage", "MemFree: 5 kB\n", "MemTotal: 5 MB\n", "MemTotal: 5\n", "MemTotal: x kB\n"]
)
def test_a_garbled_file_is_malformed(tmp_path: Path, text: str) -> None:
    (tmp_path / "meminfo").write_text(text)
    with pytest.raises(MalformedError, match="meminfo"):
        list(MemoryCollector(tmp_path).read())
