from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.collectors.disk import DISKS, DiskCollector

RECORDED = recorded_tree("two_cores")
# The example of https://docs.kernel.org/admin-guide/iostats.html
NVME = """ 259       0 nvme0n1 255999 814 12369153 47919 996852 81 36123024 425995 0 301795 580470 0 0 0 0 60602 106555
 259       1 nvme0n1p1 492 813 17572 96 848 81 108288 210 0 76 307 0 0 0 0 0 0
 259       2 nvme0n1p2 255401 1 12343477 47799 996004 0 36014736 425784 0 344336 473584 0 0 0 0 0 0
"""
OLD = " {} {} 446216 784926 9550688 4382310 424847 312726 5922052 19310380 0 3376340 23705160\n"


def written(tmp_path: Path, text: str, **sequences: str) -> DiskCollector:
    (tmp_path / "proc").mkdir(exist_ok=True)
    (tmp_path / "proc/diskstats").write_text(text)
    for disk, sequence in sequences.items():
        (tmp_path / "sys/block" / disk).mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/block" / disk / "diskseq").write_text(sequence)
    return DiskCollector(tmp_path / "proc", tmp_path / "sys")


def test_disks_are_devices_and_loop_and_ram_are_none() -> None:
    assert [sample.device for sample in DiskCollector(RECORDED / "proc", RECORDED / "sys").read()] == ["vda", "zram0"]


def test_sectors_have_512_bytes_and_times_are_milliseconds(tmp_path: Path) -> None:
    disk, *_ = written(tmp_path, NVME, nvme0n1="9\n").read()
    assert DISKS.convert(disk) == {
        "reads_total": 255999,
        "merged_reads_total": 814,
        "read_bytes_total": 12369153 * 512,
        "read_seconds_total": pytest.approx(47.919),
        "writes_total": 996852,
        "merged_writes_total": 81,
        "written_bytes_total": 36123024 * 512,
        "write_seconds_total": pytest.approx(425.995),
        "requests_in_flight": 0,
        "busy_seconds_total": pytest.approx(301.795),
        "request_seconds_total": pytest.approx(580.47),
        "discards_total": 0,
        "merged_discards_total": 0,
        "discarded_bytes_total": 0,
        "discard_seconds_total": 0,
        "flushes_total": 60602,
        "flush_seconds_total": pytest.approx(106.555),
        "disk": "nvme0n1",
        "disk_sequence": 9,
    }


def test_a_partition_names_its_whole_disk(tmp_path: Path) -> None:
    text = NVME + OLD.format("8 0", "sda") + OLD.format("8 2", "sda2") + OLD.format("104 1", "cciss/c0d0p1")
    samples = written(tmp_path, text, **{"nvme0n1": "9\n", "sda": "10\n", "cciss!c0d0": "11\n"}).read()
    assert {sample.device: (sample.values["disk"], sample.values["disk_sequence"]) for sample in samples} == {
        "nvme0n1": ("nvme0n1", 9),
        "nvme0n1p1": ("nvme0n1", 9),
        "nvme0n1p2": ("nvme0n1", 9),
        "sda": ("sda", 10),
        "sda2": ("sda", 10),
        "cciss/c0d0p1": ("cciss/c0d0", 11),
    }


def test_an_older_kernel_has_no_discards_no_flushes_and_no_sequence(tmp_path: Path) -> None:
    (tmp_path / "sys/block/hda").mkdir(parents=True)
    [sample] = written(tmp_path, OLD.format("3 0", "hda")).read()
    assert sample.values["request_seconds_total"] == 23705160
    assert sample.values["disk"] == "hda"
    assert {"discards_total", "flushes_total", "disk_sequence"}.isdisjoint(sample.values)


def test_without_sysfs_no_disk_is_named_and_the_numbers_stand(tmp_path: Path) -> None:
    [sample] = written(tmp_path, OLD.format("8 1", "sda1")).read()
    assert sample.values["reads_total"] == 446216
    assert "disk" not in sample.values


def test_a_disk_that_comes_and_one_that_goes_are_seen_at_once(tmp_path: Path) -> None:
    collector = written(tmp_path, OLD.format("8 0", "sda"), sda="3\n")
    assert [sample.device for sample in collector.read()] == ["sda"]
    written(tmp_path, OLD.format("8 16", "sdb") + OLD.format("8 17", "sdb1"), sdb="4\n")
    assert [(sample.device, sample.values["disk"]) for sample in collector.read()] == [("sdb", "sdb"), ("sdb1", "sdb")]


def test_another_disk_under_the_same_name_has_another_sequence_number(tmp_path: Path) -> None:
    collector = written(tmp_path, OLD.format("8 0", "sda"), sda="3\n")
    assert [sample.values["disk_sequence"] for sample in collector.read()] == [3]
    written(tmp_path, OLD.format("8 0", "sda"), sda="8\n")
    assert [sample.values["disk_sequence"] for sample in collector.read()] == [8]


def test_a_node_without_disks_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="diskstats: expected a disk"):
        list(written(tmp_path, OLD.format("7 0", "loop0") + OLD.format("1 0", "ram0")).read())


@pytest.mark.parametrize(
    "text", ["8 0 sda 1 2 3\n", "8 0 sda" + " x" * 11 + "\n", OLD.format("8 0", "sda").replace(" 0 ", " -1 ")]
)
def test_a_garbled_line_is_malformed(tmp_path: Path, text: str) -> None:
    with pytest.raises(MalformedError, match="diskstats"):
        list(written(tmp_path, text).read())
