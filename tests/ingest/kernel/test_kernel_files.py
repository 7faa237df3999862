import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ingest.descriptors import none_left, open_files

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.collectors.perf import PerfCollector
from crosswind.ingest.kernel.kernel_files import KernelFiles, OutOfFilesError


def test_a_kernel_file_stays_open_and_is_made_anew_for_each_read() -> None:
    files = KernelFiles()
    first = files.read("/proc/self/stat")
    assert f"/proc/{os.getpid()}/stat" in open_files()
    sum(range(3_000_000))
    assert files.read("/proc/self/stat") != first
    files.close()
    assert f"/proc/{os.getpid()}/stat" not in open_files()


def test_a_kernel_file_longer_than_one_read_is_read_to_its_end() -> None:
    path = "/proc/self/smaps"
    files = KernelFiles()
    for _ in range(2):  # opened, and kept
        content = files.read(path)
        assert len(content) > 10_000
        assert content.splitlines()[-1].startswith(b"VmFlags:")
    files.close()


def test_a_plain_file_is_opened_each_time_so_that_its_successor_is_seen(tmp_path: Path) -> None:
    files, path = KernelFiles(), tmp_path / "value"
    path.write_text("1\n")
    assert files.read(str(path)) == b"1\n"
    (tmp_path / "next").write_text("2\n")
    (tmp_path / "next").rename(path)
    assert files.read(str(path)) == b"2\n"
    path.unlink()
    with pytest.raises(UnavailableError, match="value"):
        files.read(str(path))


def test_the_files_of_an_ended_process_are_gone_and_their_descriptors_too() -> None:
    files = KernelFiles()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        path = f"/proc/{child.pid}/stat"
        assert files.read(path)
        assert path in open_files()
    with pytest.raises(UnavailableError, match=path):
        files.read(path)
    assert not any(str(child.pid) in open_path for open_path in open_files())


def test_a_folder_can_be_forgotten() -> None:
    files = KernelFiles()
    files.read("/proc/self/stat")
    files.read("/proc/uptime")
    files.forget("/proc/self")
    assert f"/proc/{os.getpid()}/stat" not in open_files()
    assert "/proc/uptime" in open_files()
    files.close()


def test_beyond_the_limit_files_are_opened_each_time() -> None:
    files = KernelFiles(kept=1)
    files.read("/proc/uptime")
    before = open_files()
    assert files.read("/proc/loadavg")
    assert not open_files() - before
    assert "/proc/uptime" in open_files()
    files.close()


@pytest.mark.parametrize("path", ["/dev/zero", "/proc", "/proc/nowhere", "/proc/self/mem"])
def test_what_is_no_kernel_text_is_refused_by_name(path: str) -> None:
    with pytest.raises((UnavailableError, MalformedError), match=path):
        KernelFiles().read(path)


def test_a_pipe_without_a_writer_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    files = KernelFiles()
    with pytest.raises(UnavailableError, match="pipe"):
        files.read(str(tmp_path / "pipe"))


@pytest.mark.host
def test_a_process_out_of_descriptors_gives_up_those_that_it_kept() -> None:
    files = KernelFiles()
    files.read("/proc/uptime")
    with none_left():
        content = files.read("/proc/loadavg")
    assert len(content.split()) == 5
    assert "/proc/uptime" not in open_files()
    files.close()


@pytest.mark.host
def test_having_no_descriptor_left_is_distinguished_from_a_file_that_is_gone() -> None:
    files = KernelFiles()
    with none_left(), pytest.raises(OutOfFilesError, match="/proc/loadavg: Too many open files"):
        files.read("/proc/loadavg")


def test_one_file_can_be_forgotten_and_its_neighbours_stay() -> None:
    files = KernelFiles()
    files.read("/proc/self/stat")
    files.read("/proc/self/status")
    files.forget_file("/proc/self/stat")
    files.forget_file("/proc/self/io")
    assert f"/proc/{os.getpid()}/stat" not in open_files()
    assert f"/proc/{os.getpid()}/status" in open_files()
    files.close()


def test_kept_files_and_counters_together_leave_room_for_others() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        files, perf = KernelFiles(), PerfCollector()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for up in range(40):  # one file under forty names
        files.read(f"/proc/{'self/../' * up}uptime")
    assert perf.descriptors == 64
    assert open_files()["/proc/uptime"] == 32
    files.close()
