import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.ingest.lab.traffic import in_a_lab, megabits, output_of, round_trip_ms
from tests.needs import ROOT, needs

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.ingest.kernel.procfs import start_ticks
from crosswind.ingest.lab.hosts.hosts import NAMESPACES, Host, hosts, remove_abandoned
from crosswind.ingest.lab.hosts.names import is_abandoned, new_name
from crosswind.ingest.lab.hosts.programs import program, require_lab

LIVING_LAB = """
import subprocess, sys, time
from pathlib import Path
from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.hosts.hosts import hosts
from crosswind.ingest.lab.injectors import INJECTORS, Target

with hosts(2, wired=[1]) as net:
    rank = subprocess.Popen(net[0].command(["sleep", "1000"]))
    scratch = Path(sys.argv[1])
    target = Target(net[1], (rank.pid,), 0, scratch, Conditions.create(scratch / "conditions", 1), net[:1], 0)
    for kind in ("rate_cap", "packet_loss", "neighbour_traffic", "cpu_hog", "cpu_quota", "disk_pressure", "pause"):
        INJECTORS[kind]().start(target, INJECTORS[kind].limits[1] if kind == "pause" else 2.0)
    print(net[0].lab, rank.pid, flush=True)
    time.sleep(1000)
"""


@in_a_lab
def test_every_host_reaches_every_other_one(net: tuple[Host, ...]) -> None:
    for caller, host in ((0, 1), (1, 2), (2, 0)):
        assert 0 < round_trip_ms(net[caller], net[host]) < 1000


@in_a_lab
@pytest.mark.host
def test_a_link_is_as_fast_as_requested() -> None:
    with hosts(2, megabits=200) as (first, second):
        assert megabits(first, second) == pytest.approx(200, rel=0.15)  # headers take 1 %, a busy machine more


@in_a_lab
def test_a_host_sees_its_own_device_and_the_control_groups_of_the_machine(net: tuple[Host, ...]) -> None:
    script = "import os; print(sorted(os.listdir('/sys/class/net')), sorted(os.listdir('/sys/fs/cgroup')))"
    assert output_of(net[0], script) == f"['eth0', 'lo'] {names_in('/sys/fs/cgroup')}\n"


@in_a_lab
def test_what_is_on_the_machines_mount_point_is_still_there_inside(net: tuple[Host, ...]) -> None:
    script = "import os; print(sorted(os.listdir('/mnt')), os.path.ismount('/mnt'))"
    assert output_of(net[0], script) == f"{names_in('/mnt')} {os.path.ismount('/mnt')}\n"


def names_in(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


@in_a_lab
def test_a_command_inside_is_the_process_that_was_started(net: tuple[Host, ...]) -> None:
    command = net[1].command([sys.executable, "-S", "-c", "import os; print(os.getpid())"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.communicate()[0] == f"{process.pid}\n"


@in_a_lab
def test_the_machines_own_network_stays_as_it_is() -> None:
    script = """
import subprocess
from crosswind.ingest.lab.hosts.hosts import hosts
with hosts(2, wired=[1]):
    print(subprocess.run(["ip", "-o", "link"], capture_output=True, check=True).stdout.count(b"\\n"))
"""
    command = ["unshare", "--net", sys.executable, "-c", script]  # a network where nothing else happens
    assert subprocess.run(command, capture_output=True, check=True, text=True).stdout == "1\n"  # lo


@in_a_lab
def test_two_labs_stand_side_by_side_with_the_same_addresses(net: tuple[Host, ...]) -> None:
    with hosts(2) as other:
        assert other[1].address == net[1].address
        assert other[1].namespace != net[1].namespace
        assert round_trip_ms(other[0], other[1]) < 1000
        assert round_trip_ms(net[0], net[1]) < 1000


@in_a_lab
def test_nothing_is_left_after_an_error_in_the_lab() -> None:
    def fail() -> None:
        with hosts(2, wired=[0]) as (first, second):
            seen.extend([first, second])
            seen.append(subprocess.Popen(second.command(["sleep", "1000"]), start_new_session=True))
            raise RuntimeError("the training failed")

    seen: list[Host | subprocess.Popen[bytes]] = []
    with pytest.raises(RuntimeError, match="the training failed"):
        fail()
    first, _second, process = seen
    assert isinstance(first, Host)
    assert isinstance(process, subprocess.Popen)
    assert not any(path.name.startswith(first.lab) for path in NAMESPACES.iterdir())
    assert process.wait(5) == -signal.SIGKILL
    assert first.wire is not None
    assert first.wire.companion.process.returncode == -signal.SIGKILL


@in_a_lab
def test_what_a_killed_lab_left_is_removed_and_a_living_one_stays(net: tuple[Host, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIVING_LAB, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        name, rank = lab.stdout.readline().split()
        lab.kill()
    rank_start = start_ticks(int(rank))
    wait_until(lambda: not processes_with(f"{START_OF_COMPANIONS}\0{lab.pid}\0"))
    wait_until(lambda: state_of(int(rank)) == "S")  # the pause goes on after the lab's death, the rank does not stay
    removed = remove_abandoned()
    assert {f"{name}-net", f"{name}-0", f"{name}-1", f"{name}-quota-{rank}"} <= set(removed)
    assert not lives(int(rank), rank_start)
    assert not any(path.name.startswith(name) for path in NAMESPACES.iterdir())
    assert not list(Path("/sys/fs/cgroup").rglob(f"{name}*"))
    assert (NAMESPACES / net[0].namespace).exists()


START_OF_COMPANIONS = "from crosswind.ingest.lab.hosts.companion import main; main()"


def processes_with(words: str) -> list[Path]:
    matches = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in path.read_text():
                matches.append(path)
        except (OSError, UnicodeDecodeError):
            continue
    return matches


def lives(pid: int, start: int) -> bool:
    try:
        return start_ticks(pid) == start
    except UnavailableError:
        return False


def state_of(pid: int) -> str:
    return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]


def wait_until(is_so: object, seconds: float = 10.0) -> None:
    assert callable(is_so)
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "not so in time"
        time.sleep(0.01)


def test_a_name_is_abandoned_once_its_process_has_ended() -> None:
    script = "from crosswind.ingest.lab.hosts.names import new_name; print(new_name())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert is_abandoned(done.stdout.strip())
    assert is_abandoned(f"{done.stdout.strip()}-net")
    assert not is_abandoned(f"{new_name()}-net")


def test_a_name_is_abandoned_when_another_process_has_got_its_number() -> None:
    start = start_ticks(os.getpid())
    assert is_abandoned(new_name().replace(f"-{start}-", f"-{start - 1}-"))


@pytest.mark.parametrize("name", ["eth0", "cwlab-", "cwlab-1-2", "fx1"])
def test_names_of_others_are_never_abandoned(name: str) -> None:
    assert not is_abandoned(name)


@pytest.mark.parametrize(("count", "wired"), [(0, []), (201, []), (2, [2]), (2, [-1])])
def test_a_lab_that_cannot_be_is_refused(count: int, wired: list[int]) -> None:
    with (
        pytest.raises(InvalidInputError, match=rf"count {count}, wired .*: expected 1 to 200 hosts"),
        hosts(count, wired=wired),
    ):
        pytest.fail("it was made")


@needs(ROOT, "becoming somebody else", unless=os.geteuid() == 0)
def test_without_root_a_lab_is_refused() -> None:
    os.seteuid(65534)
    try:
        with pytest.raises(UnavailableError, match=r"user id 65534: .*run it as root"):
            require_lab()
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(("name", "package"), [("nft", "nftables"), ("setpriv", "util-linux")])
def test_a_missing_program_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, package: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=f"no program {name}: install the package {package}"):
        program(name, more=str(tmp_path))
