import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ingest.lab.traffic import (
    arrived,
    in_a_lab,
    megabits,
    output_of,
    round_trip_ms,
)

from crosswind.data.errors import UnavailableError
from crosswind.ingest.lab.cgroups import CpuGroups
from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.hosts import Host, hosts
from crosswind.ingest.lab.injectors import INJECTORS, Injector, Target

BUSY = "while True: pass"
IN_PROCESSES = ("neighbour_traffic", "cpu_hog", "memory_traffic", "disk_pressure", "pause")
NEEDS_NO_LAB = ("slow_input", "slow_rank", "late_checkpoint")


@pytest.fixture(scope="module")
def net() -> Iterator[tuple[Host, ...]]:
    with hosts(3, wired=[2]) as made:
        yield made


@pytest.fixture(scope="module")
def rank(net: tuple[Host, ...]) -> Iterator[int]:
    """A process that is never done, on the first core, in the first host."""
    with subprocess.Popen(net[0].command([sys.executable, "-S", "-c", BUSY]), start_new_session=True) as process:
        os.sched_setaffinity(process.pid, {first_core()})
        while Path(f"/proc/{process.pid}/comm").read_text() in ("nsenter\n", "unshare\n", "sh\n"):
            time.sleep(0.001)
        yield process.pid
        process.kill()


@pytest.fixture
def target(net: tuple[Host, ...], rank: int, tmp_path: Path) -> Target:
    conditions = Conditions.create(tmp_path / "conditions", 2)
    return Target(net[0], (rank,), 1, tmp_path, conditions, (net[1], net[2]), first_core())


def first_core() -> int:
    return min(os.sched_getaffinity(0))


@contextmanager
def at_work(kind: str, target: Target, strength: float) -> Iterator[None]:
    """The fault, there while this lasts."""
    injector = INJECTORS[kind]()
    injector.start(target, strength)
    try:
        yield
    finally:
        injector.stop()


@in_a_lab
def test_a_rate_cap_is_what_gets_through_in_both_directions(target: Target) -> None:
    host, other = target.host, target.neighbours[0]
    with at_work("rate_cap", target, 40):
        assert megabits(host, other) == pytest.approx(40, rel=0.15)  # headers take 1 %, a busy machine more
        assert megabits(other, host) == pytest.approx(40, rel=0.15)
    assert megabits(host, other) > 80


@in_a_lab
def test_after_a_rate_cap_the_link_is_as_fast_as_it_was_made() -> None:
    with hosts(2, megabits=100) as (host, other):
        target = Target(host, (), 0, Path("/"), Conditions.__new__(Conditions))
        with at_work("rate_cap", target, 20):
            assert megabits(host, other) == pytest.approx(20, rel=0.15)
        assert megabits(host, other) == pytest.approx(100, rel=0.15)


@in_a_lab
def test_of_lost_packets_about_the_asked_share_is_missing_both_ways(target: Target) -> None:
    host, other = target.host, target.neighbours[0]
    with at_work("packet_loss", target, 20):
        # 4000 draws at 20 %: a standard deviation of 25 packets, of which five are allowed.
        assert 800 - 125 < 4000 - arrived(host, other, 4000) < 800 + 125
        assert 800 - 125 < 4000 - arrived(other, host, 4000) < 800 + 125
    assert arrived(host, other, 4000) > 3900


@in_a_lab
def test_the_kernel_sends_again_what_was_lost(target: Target) -> None:
    before = retransmitted(target.host)
    with at_work("packet_loss", target, 2):
        megabits(target.host, target.neighbours[0])
    assert retransmitted(target.host) > before


def retransmitted(host: Host) -> int:
    names, values = [line.split() for line in output_of(host, SNMP).splitlines() if line.startswith("Tcp:")]
    return int(values[names.index("RetransSegs")])


SNMP = "print(open('/proc/net/snmp').read())"


@in_a_lab
def test_latency_is_added_each_way_and_gone_afterwards(target: Target) -> None:
    wired, other = target.neighbours[1], target.host
    with at_work("latency", replace(target, host=wired), 20):
        assert 40 <= round_trip_ms(other, wired) < 48  # the wire's process has to be scheduled four times
        assert 40 <= round_trip_ms(wired, other) < 48
    assert round_trip_ms(other, wired) < 20


@in_a_lab
def test_a_latency_of_nothing_lets_everything_through(target: Target) -> None:
    wired = target.neighbours[1]
    with at_work("latency", replace(target, host=wired), 0):
        assert round_trip_ms(target.host, wired) < 20


@in_a_lab
def test_a_host_without_a_wire_cannot_be_late(target: Target) -> None:
    with pytest.raises(UnavailableError, match="host 0: has no wire, make it by hosts"):
        INJECTORS["latency"]().start(target, 1)


@in_a_lab
def test_neighbours_move_bytes_both_ways_through_the_ranks_port(target: Target) -> None:
    with at_work("neighbour_traffic", target, 2):
        before = port_bytes(target.host)
        time.sleep(0.3)
        moved = [now - then for now, then in zip(port_bytes(target.host), before, strict=True)]
        assert all(count > 1_000_000 for count in moved)  # 30 Mbit/s; a veth takes some thousand
        users = {Path("/proc", str(pid)).stat().st_uid for pid in running_companions()}
    assert users == {0, 65534}  # the wire's own and the neighbours'
    before = port_bytes(target.host)
    time.sleep(0.1)
    assert sum(port_bytes(target.host)) - sum(before) < 1_000_000


def port_bytes(host: Host) -> list[int]:
    line = next(line for line in output_of(host, DEVICES).splitlines() if host.device in line).split()
    return [int(line[1]), int(line[9])]


DEVICES = "print(open('/proc/net/dev').read().replace(':', ': '))"


@in_a_lab
def test_two_ranks_of_one_host_have_neighbours_of_their_own(target: Target) -> None:
    with at_work("neighbour_traffic", target, 1), at_work("neighbour_traffic", replace(target, rank=0), 1):
        assert len(running_companions()) == 1 + 2 * 2  # the wire, and both ends of two streams


@in_a_lab
def test_a_rank_without_neighbours_has_no_traffic_of_theirs(target: Target) -> None:
    with pytest.raises(UnavailableError, match="rank 1: has no neighbours"):
        INJECTORS["neighbour_traffic"]().start(replace(target, neighbours=()), 1)


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


def over(counter: Callable[[], float], seconds: float) -> tuple[float, float]:
    """By how much a counter grows while this time passes, and how long it really was."""
    begin, before = time.monotonic(), counter()
    time.sleep(seconds)
    return counter() - before, time.monotonic() - begin


@in_a_lab
def test_a_quota_throttles_the_rank_to_its_share_and_lets_it_go_again(target: Target, rank: int) -> None:
    before = Path(f"/proc/{rank}/cgroup").read_text()
    with at_work("cpu_quota", target, 30):
        folder = CpuGroups.found().root.joinpath(*group_of(rank).split("/"))
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
        assert not list(CpuGroups.found().root.rglob(f"{target.host.lab}*"))


def group_of(pid: int) -> str:
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    return next(path for _, controllers, path in lines if "cwlab" in path and controllers in ("cpu", "cpu,cpuacct", ""))


def throttled(folder: Path) -> int:
    return int((folder / "cpu.stat").read_text().split("nr_throttled")[1].split()[0])


def used_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_a_quota_in_version_2_is_a_group_below_the_root_with_a_maximum(tmp_path: Path) -> None:
    """The files that admin-guide/cgroup-v2 documents, as plain ones."""
    (tmp_path / "proc" / "42").mkdir(parents=True)
    (tmp_path / "proc" / "42" / "cgroup").write_text("0::/user.slice/session-1.scope\n")
    root = tmp_path / "cgroup"
    root.mkdir()
    (root / "cgroup.subtree_control").write_text("memory pids")
    quota = CpuGroups(root, 2, tmp_path / "proc").limit("cwlab-1-2-abcdef", [42], 150)
    assert quota.folder == root / "cwlab-1-2-abcdef-quota-42"
    assert quota.before == root / "user.slice/session-1.scope"
    assert (root / "cgroup.subtree_control").read_text() == "+cpu"
    assert (quota.folder / "cpu.max").read_text() == "150000 100000"
    assert (quota.folder / "cgroup.procs").read_text() == "42"


def test_in_a_container_the_group_stands_below_what_is_mounted(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "cgroup").write_text("3:cpu,cpuacct:/docker/0123/job\n")
    (tmp_path / "job").mkdir()
    quota = CpuGroups(tmp_path, 1, tmp_path, "/docker/0123").limit("cwlab-1-2-abcdef", [42], 40)
    assert quota.folder == tmp_path / "job" / "cwlab-1-2-abcdef-quota-42"
    assert (quota.folder / "cpu.cfs_quota_us").read_text() == "40000"
    assert (quota.folder / "cpu.cfs_period_us").read_text() == "100000"


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ("30 23 0:26 / {root} rw - cgroup cgroup rw,cpu,cpuacct", 1),
        ("30 23 0:26 / {root} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate", 2),
    ],
)
def test_the_hierarchy_with_the_cpu_controller_is_found(tmp_path: Path, mounts: str, expected: int) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(
        f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n{mounts.format(root=tmp_path)}\n"
    )
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    assert CpuGroups.found(tmp_path) == CpuGroups(tmp_path, expected, tmp_path)


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    with pytest.raises(UnavailableError, match="no mounted control groups with the cpu controller"):
        CpuGroups.found(tmp_path)


@in_a_lab
def test_memory_traffic_runs_beside_the_ranks_core(target: Target) -> None:
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


@in_a_lab
def test_a_paused_rank_stands_still_and_goes_on_by_itself(target: Target, rank: int) -> None:
    injector = INJECTORS["pause"]()
    started_ns = injector.start(target, 0.4)
    assert over(lambda: used_seconds(rank), 0.2)[0] == 0
    time.sleep(0.5)
    assert over(lambda: used_seconds(rank), 0.2)[0] > 0
    assert 0.3 < (injector.stop() - started_ns) / 1e9 < 1.0


@in_a_lab
def test_a_stopped_pause_lets_the_rank_go_on_at_once(target: Target, rank: int) -> None:
    injector = INJECTORS["pause"]()
    injector.start(target, 600)
    injector.stop()
    assert Path(f"/proc/{rank}/stat").read_text().rpartition(")")[2].split()[0] == "R"


@in_a_lab
def test_a_rank_that_dies_in_a_pause_does_not_disturb_its_end(target: Target) -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        injector = INJECTORS["pause"]()
        started_ns = injector.start(replace(target, pids=(process.pid,)), 600)
        process.kill()
        process.wait()
        assert injector.stop() >= started_ns


@in_a_lab
def test_a_rank_that_has_ended_cannot_be_paused_or_held(target: Target) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    for kind in ("pause", "cpu_quota"):
        with pytest.raises(UnavailableError):
            INJECTORS[kind]().start(replace(target, pids=(process.pid,)), 1)


@in_a_lab
@pytest.mark.parametrize("kind", ["pause", "cpu_quota"])
def test_a_rank_without_processes_cannot_be_paused_or_held(target: Target, kind: str) -> None:
    with pytest.raises(UnavailableError, match="rank 1: none of its processes is known"):
        INJECTORS[kind]().start(replace(target, pids=()), 1)


@in_a_lab
@pytest.mark.parametrize("kind", NEEDS_NO_LAB)
def test_what_the_program_does_to_itself_it_is_told_by_its_conditions(target: Target, kind: str) -> None:
    with Conditions.attach(target.conditions.path) as seen:
        with at_work(kind, target, 12.5):
            assert [seen.get(rank, f"{kind}_ms") for rank in (0, 1)] == [0.0, 12.5]
        assert seen.get(1, f"{kind}_ms") == 0.0


@in_a_lab
@pytest.mark.parametrize("kind", INJECTORS)
def test_every_fault_can_be_switched_twice_and_says_when(target: Target, kind: str) -> None:
    injector: Injector = INJECTORS[kind]()
    where = replace(target, host=target.neighbours[1], neighbours=(target.host,))
    begin = time.time_ns()
    injector.stop()
    started_ns = injector.start(where, max(1.0, injector.limits[0]))
    running = running_companions()
    injector.start(where, max(1.0, injector.limits[0]))
    assert running_companions() == running
    ended_ns = injector.stop()
    injector.stop()
    assert begin <= started_ns <= ended_ns <= time.time_ns()
    assert len(running_companions()) == 1  # the wire


@in_a_lab
def test_processes_of_faults_end_with_the_lab_but_not_with_the_thread_that_started_them() -> None:
    script = """
import sys, threading, time
from crosswind.ingest.lab import companion
from crosswind.ingest.lab.injectors.cpu_hog import spin
found = []
thread = threading.Thread(target=lambda: found.append(companion.start(spin, int(sys.argv[1]))))
thread.start()
thread.join()
time.sleep(0.1)
print(found[0].process.pid, found[0].process.poll(), flush=True)
time.sleep(1000)
"""
    command = [sys.executable, "-c", script, str(first_core())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        pid, ended = lab.stdout.readline().split()
        assert ended == "None"
        lab.kill()
    deadline = time.monotonic() + 5
    while alive([int(pid)]):
        assert time.monotonic() < deadline, "it outlives the lab"
        time.sleep(0.01)


def running_companions() -> list[int]:
    """Children of this process that are at work for a lab."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in children if "companion" in Path(f"/proc/{pid}/cmdline").read_text()]


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                found.append(pid)
        except FileNotFoundError:
            continue
    return found


@in_a_lab
def test_a_wire_that_has_ended_says_so() -> None:
    with hosts(2, wired=[0, 1]) as (first, second):
        assert first.wire is not None
        assert second.wire is not None
        first.wire.companion.process.kill()
        second.wire.cut()
        for wire in (first.wire, second.wire):
            with pytest.raises(UnavailableError, match="wire: "):
                wire.delay(1)
