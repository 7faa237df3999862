import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.collectors.filesystem import FilesystemCollector, Statvfs

MOUNTS = r"""proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0
/dev/nvme0n1p2 / xfs rw,relatime,attr2,inode64,noquota 0 0
tmpfs /dev/shm tmpfs rw,nosuid,nodev,inode64 0 0
tmpfs /run tmpfs rw,nosuid,nodev,size=26357164k,mode=755 0 0
cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime 0 0
10.0.0.5@o2ib:10.0.0.6@o2ib:/scratch /scratch lustre rw,flock,lazystatfs 0 0
nfs01:/export/home /home nfs4 ro,relatime,vers=4.2,hard,proto=tcp 0 0
nfs01:/export/home /home/bound nfs4 rw,relatime,vers=4.2,hard,proto=tcp 0 0
/dev/sdb1 /data\040sets ext4 rw,relatime 0 0
"""
# block size, fragment size, blocks, free, available, files, free files, available files, flags, longest name
ANSWER = os.statvfs_result((1048576, 4096, 1000, 400, 300, 64, 60, 60, 0, 255))


def recorded(tmp_path: Path, statvfs: Statvfs, *paths: str, mounts: str = MOUNTS) -> FilesystemCollector:
    (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc/self/mounts").write_text(mounts)
    return FilesystemCollector(tmp_path, paths, statvfs=statvfs, answer_seconds=0.2)


def always(answer: os.statvfs_result) -> Statvfs:
    return lambda path: answer


def test_disks_shared_and_program_filled_memory_file_systems_are_read_and_bind_mounts_once(tmp_path: Path) -> None:
    devices = [sample.device for sample in recorded(tmp_path, always(ANSWER)).read()]
    assert devices == ["/", "/dev/shm", "/scratch", "/home", "/data sets"]


def test_blocks_are_counted_in_fragments(tmp_path: Path) -> None:
    *_, home, _ = recorded(tmp_path, always(ANSWER)).read()
    assert dict(home.values) == {
        "filesystem_type": "nfs4",
        "mounted_from": "nfs01:/export/home",
        "size_bytes": 4096000,
        "free_bytes": 1638400,
        "available_bytes": 1228800,
        "files": 64,
        "free_files": 60,
        "is_read_only": False,
        "is_answering": True,
    }


def test_where_no_number_of_files_is_set_it_is_missing_and_not_zero(tmp_path: Path) -> None:
    answer = os.statvfs_result((4096, 4096, 1000, 400, 300, 0, 0, 0, os.ST_RDONLY, 255))
    [sample] = recorded(tmp_path, always(answer), "/scratch").read()
    assert "files" not in sample.values
    assert sample.values["is_read_only"] is True


def hung_on(name: str, until: threading.Event, asked: list[str]) -> Callable[[str], os.statvfs_result]:
    def statvfs(path: str) -> os.statvfs_result:
        asked.append(path)
        if path.endswith(name):
            until.wait(10)
        return ANSWER

    return statvfs


def test_a_file_system_that_hangs_says_so_hides_no_other_and_is_not_asked_again(tmp_path: Path) -> None:
    until, asked = threading.Event(), list[str]()
    collector = recorded(tmp_path, hung_on("scratch", until, asked))
    for _ in range(2):
        answering = {sample.device: sample.values["is_answering"] for sample in collector.read()}
        assert answering == {"/": True, "/dev/shm": True, "/scratch": False, "/home": True, "/data sets": True}
    assert asked.count(str(tmp_path / "scratch")) == 1
    until.set()
    values = {sample.device: sample.values for sample in collector.read()}["/scratch"]
    assert values["available_bytes"] == 1228800


def test_a_file_system_that_hangs_has_no_numbers(tmp_path: Path) -> None:
    until = threading.Event()
    [sample] = recorded(tmp_path, hung_on("home", until, []), "/home").read()
    until.set()
    expected = {"filesystem_type": "nfs4", "mounted_from": "nfs01:/export/home", "is_answering": False}
    assert dict(sample.values) == expected


def test_what_is_unmounted_meanwhile_or_hidden_is_no_row(tmp_path: Path) -> None:
    def statvfs(path: str) -> os.statvfs_result:
        if path.endswith("home"):
            raise PermissionError(13, "Permission denied")
        return ANSWER

    devices = [sample.device for sample in recorded(tmp_path, statvfs, "/home", "/scratch").read()]
    assert devices == ["/scratch"]


@pytest.mark.parametrize("mounts", ["", "garbage", "a b c\n", "proc /proc proc rw 0 0\n", "\0" * 5000])
def test_without_a_file_system_the_source_is_down(tmp_path: Path, mounts: str) -> None:
    with pytest.raises(UnavailableError, match="proc/self/mounts"):
        list(recorded(tmp_path, always(ANSWER), mounts=mounts).read())


def test_this_machines_own_numbers_are_those_of_statvfs(tmp_path: Path) -> None:
    mounts = f"/dev/vda {tmp_path} ext4 rw 0 0\n"
    (tmp_path / "root/proc/self").mkdir(parents=True)
    (tmp_path / "root/proc/self/mounts").write_text(mounts)
    (tmp_path / "root" / str(tmp_path).lstrip("/")).mkdir(parents=True)
    [sample] = FilesystemCollector(tmp_path / "root").read()
    answer = os.statvfs(tmp_path)
    assert sample.values["size_bytes"] == answer.f_blocks * answer.f_frsize
