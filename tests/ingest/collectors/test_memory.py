from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.collectors.memory import MEMORY, MemoryCollector

RECORDED = recorded_tree("two_cores") / "proc"


def test_a_kilobyte_has_1024_bytes() -> None:
    [node] = MemoryCollector(RECORDED).read()
    assert node.values["total_bytes"] == 24684084
    assert MEMORY.convert(node)["total_bytes"] == 24684084 * 1024


def test_events_come_from_vmstat() -> None:
    [node] = MemoryCollector(RECORDED).read()
    assert node.values["page_faults_total"] == 19845190
    assert node.values["major_page_faults_total"] == 7269
    assert node.values["oom_kills_total"] == 0
    assert MEMORY.convert(node)["paged_in_bytes_total"] == 8831925 * 1024


def test_allocated_pages_are_summed_over_the_zones(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\n")
    (tmp_path / "vmstat").write_text("pgalloc_dma 1\npgalloc_normal 20\npgalloc_movable 300\n")
    [node] = MemoryCollector(tmp_path).read()
    assert node.values["allocated_pages_total"] == 321


def test_stalls_are_summed_over_the_zones_that_the_kernel_has(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\n")
    (tmp_path / "vmstat").write_text("allocstall_dma32 4\nallocstall_normal 50\nallocstall_movable 600\n")
    [node] = MemoryCollector(tmp_path).read()
    assert node.values["allocation_stalls_total"] == 654


def test_memory_wanted_again_and_pages_of_the_wrong_node_come_from_vmstat() -> None:
    [node] = MemoryCollector(RECORDED).read()
    assert node.values["refaulted_file_pages_total"] == 1924338
    assert (node.values["numa_hit_pages_total"], node.values["numa_miss_pages_total"]) == (20445590, 0)
    assert (node.values["huge_page_faults_total"], node.values["slab_drops_total"]) == (112, 2)


def test_an_older_kernels_refaults_are_those_of_files(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\n")
    (tmp_path / "vmstat").write_text("workingset_refault 7\n")
    [node] = MemoryCollector(tmp_path).read()
    assert dict(node.values) == {"total_bytes": 8, "refaulted_file_pages_total": 7}


def test_huge_pages_are_counted_and_their_size_is_in_kilobytes(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nHugePages_Total:      12\nHugepagesize:       2048 kB\n")
    [node] = MemoryCollector(tmp_path).read()
    assert MEMORY.convert(node) == {"total_bytes": 8192, "huge_pages": 12, "huge_page_bytes": 2 * 1024 * 1024}


def test_what_the_kernel_does_not_tell_is_missing_and_not_zero(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nDirectMap4k: 5 kB\n")
    [node] = MemoryCollector(tmp_path).read()
    assert dict(node.values) == {"total_bytes": 8}


@pytest.mark.parametrize(
    "text", ["", "garbage", "MemFree: 5 kB\n", "MemTotal: 5 MB\n", "MemTotal: 5\n", "MemTotal: x kB\n"]
)
def test_a_garbled_file_is_malformed(tmp_path: Path, text: str) -> None:
    (tmp_path / "meminfo").write_text(text)
    with pytest.raises(MalformedError, match="meminfo"):
        list(MemoryCollector(tmp_path).read())
