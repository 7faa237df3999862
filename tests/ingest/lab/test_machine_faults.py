import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ingest.lab.conftest import on_the_first_core
from tests.ingest.lab.observed import alive, at_work, first_core, over, running_companions, used_seconds
from tests.ingest.lab.traffic import in_a_lab

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts.cgroups import CpuGroups
from crosswind.ingest.lab.hosts.hosts import Host
from crosswind.ingest.lab.injectors import INJECTORS, Target

BUSY = "while True: pass"


@pytest.fixture(scope="module")
def rank(net: tuple[Host, ...]) -> Iterator[int]:
    """A process that is never done."""
    with on_the_first_core(net[0], BUSY) as process:
        yield process


@in_a_lab
def test_under_a_hog_the_rank_waits_for_its_core(target: Target, rank: int) -> None:
    with at_work("cpu_hog", target, 3):
        waited, took = over(lambda: waited_seconds(rank), 1.0)
        hogs = [pid for pid in running_companions() if Path("/proc", str(pid)).stat().st_uid == 65534]
        assert len(hogs) == 3
        assert all(os.sched_getaffinity(pid) == {first_core()} for pid in hogs)
    assert waited / took > 0.5  # of four on one core each waits three quarters of the time
    assert not alive(hogs)


@in_a_lab
def test_a_hog_finds_the_core_that_the_rank_runs_on(target: Target, rank: int) -> None:
    with at_work("cpu_hog", replace(target, core=None), 1):
        [hog] = [pid for pid in running_companions() if Path("/proc", str(pid)).stat().st_uid == 65534]
        assert os.sched_getaffinity(hog) == {first_core()}


def waited_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


@in_a_lab
def test_a_quota_throttles_the_rank_to_its_share_and_lets_it_go_again(target: Target, rank: int) -> None:
    before = Path(f"/proc/{rank}/cgroup").read_text()
    with at_work("cpu_quota", target, 30):
        folder = CpuGroups.mounted().root.joinpath(*group_of(rank).split("/"))
        assert folder.name.startswith(target.host.lab)
        used, took = over(lambda: used_seconds(rank), 1.0)
        assert throttled(folder) >= 3  # of ten periods
        assert used / took < 0.40  # a period more or less at either end
    assert Path(f"/proc/{rank}/cgroup").read_text() == before
    assert not folder.exists()


@in_a_lab
def test_a_quota_is_lifted_while_its_rank_dies(target: Target) -> None:
    script = "import threading, time; [threading.Thread(target=time.sleep, args=[99]).start() for _ in range(50)]"
    with subprocess.Popen([sys.executable, "-S", "-c", script]) as process:
        injector = INJECTORS["cpu_quota"]()
        injector.start(replace(target, pids=(process.pid,)), 1)
        time.sleep(0.2)
        process.kill()
        injector.stop()
        assert not list(CpuGroups.mounted().root.rglob(f"{target.host.lab}*"))


def group_of(pid: int) -> str:
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    return next(path for _, controllers, path in lines if "cwlab" in path and controllers in ("cpu", "cpu,cpuacct", ""))


def throttled(folder: Path) -> int:
    return int((folder / "cpu.stat").read_text().split("nr_throttled")[1].split()[0])


@in_a_lab
def test_memory_traffic_runs_next_to_the_ranks_core(target: Target) -> None:
    with at_work("memory_traffic", target, 1):
        [pid] = [pid for pid in running_companions() if Path("/proc", str(pid)).stat().st_uid == 65534]
        assert os.sched_getaffinity(pid) == (os.sched_getaffinity(0) - {first_core()} or {first_core()})
        resident_pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        assert resident_pages * os.sysconf("SC_PAGESIZE") >= 2 * 256 << 20
        assert over(lambda: used_seconds(pid), 0.2)[0] > 0


@in_a_lab
def test_disk_pressure_writes_and_leaves_no_file(target: Target) -> None:
    before = set(target.scratch.iterdir())
    with at_work("disk_pressure", target, 2):
        writers = [pid for pid in running_companions() if Path("/proc", str(pid)).stat().st_uid == 65534]
        assert len(writers) == 2
        assert over(lambda: sum(map(written_bytes, writers)), 0.5)[0] >= 4 << 20
    assert set(target.scratch.iterdir()) == before


def written_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().split("wchar:")[1].split()[0])


@in_a_lab
def test_a_scratch_folder_that_is_not_there_is_an_error_and_leaves_no_writer(target: Target) -> None:
    before = running_companions()
    with pytest.raises(UnavailableError, match="disk_pressure: write said b''"):
        INJECTORS["disk_pressure"]().start(replace(target, scratch=target.scratch / "nowhere"), 2)
    assert running_companions() == before
