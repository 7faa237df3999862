import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.lab.faults import LIMITS, UNITS, Disturbance, Fault, pin_to_core, touch_fresh_memory


def running_children() -> list[Path]:
    return [path for task in Path("/proc/self/task").iterdir() for path in children_of(task)]


def children_of(task: Path) -> list[Path]:
    return [Path("/proc", pid) for pid in (task / "children").read_text().split()]


@pytest.mark.parametrize(
    "fault", [Fault("cpu_hog", 1, 2.0), Fault("slow_input", 0, 12.5), Fault("memory_traffic", 3, 64.0)]
)
def test_a_fault_is_what_its_text_says(fault: Fault) -> None:
    assert Fault.parse(str(fault)) == fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected kind:rank:strength"),
        ("cpu_hog", "expected kind:rank:strength"),
        ("cpu_hog:1:2:3", "expected kind:rank:strength"),
        ("cpu_hog:one:2", "expected kind:rank:strength"),
        ("cpu_hog:1:much", "expected kind:rank:strength"),
        ("earthquake:0:1", "kind is not one of cpu_hog, slow_input, memory_traffic"),
        ("cpu_hog:-1:1", "expected rank >= 0 and 0 < strength <= 64 processes"),
        ("cpu_hog:0:0", "expected rank >= 0 and 0 < strength <= 64 processes"),
        ("cpu_hog:0:1.5", "expected a whole number of processes"),
        ("slow_input:0:nan", "0 < strength <= 10000 ms a batch"),
        ("slow_input:0:inf", "0 < strength <= 10000 ms a batch"),
        ("memory_traffic:0:1e9", "0 < strength <= 16384 MiB a step"),
    ],
)
def test_what_is_no_fault_is_refused_with_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        Fault.parse(text)
    assert message in str(raised.value)
    assert repr(text) in str(raised.value)


def test_every_kind_has_a_unit_and_a_limit() -> None:
    assert UNITS.keys() == LIMITS.keys()


def test_slow_input_delays_its_rank_by_its_milliseconds() -> None:
    begin = time.perf_counter()
    Disturbance(Fault("slow_input", 1, 30), rank=1).in_loader()
    assert time.perf_counter() - begin >= 0.03


def test_other_ranks_and_an_undisturbed_run_are_left_alone() -> None:
    begin = time.perf_counter()
    for disturbance in (Disturbance(Fault("slow_input", 1, 10_000), rank=0), Disturbance(None, rank=0)):
        with disturbance.around_loop():
            disturbance.in_loader()
            disturbance.in_step()
    assert time.perf_counter() - begin < 5


def test_memory_traffic_has_the_kernel_clear_every_page() -> None:
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    Disturbance(Fault("memory_traffic", 0, 8), rank=0).in_step()
    faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
    assert faults >= 8 * 2**20 // resource.getpagesize() // 512  # huge pages would take 512 at a time


def test_fresh_memory_is_given_back() -> None:
    touch_fresh_memory(1 << 20)
    before = resident_bytes()
    touch_fresh_memory(64 << 20)
    assert resident_bytes() - before < 16 << 20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_a_cpu_hog_spins_on_its_ranks_core_while_the_loop_lasts() -> None:
    allowed = os.sched_getaffinity(0)
    before = set(running_children())
    try:
        pin_to_core(1)
        with Disturbance(Fault("cpu_hog", 0, 2), rank=0).around_loop():
            hogs = [child for child in running_children() if child not in before]
            assert len(hogs) == 2
            ours = os.sched_getaffinity(0)
            assert all(os.sched_getaffinity(int(hog.name)) == ours for hog in hogs)
            time.sleep(0.3)
            assert sum(ticks_of(hog) for hog in hogs) > 0
    finally:
        os.sched_setaffinity(0, allowed)
    assert not any(hog.exists() for hog in hogs)


def ticks_of(process: Path) -> int:
    return int((process / "stat").read_text().rsplit(")", 1)[1].split()[11])


def test_a_cpu_hog_dies_with_its_rank() -> None:
    code = """
import os, sys
from crosswind.ingest.lab.faults import Disturbance, Fault
with Disturbance(Fault("cpu_hog", 0, 1), 0).around_loop():
    print(open(f"/proc/self/task/{os.getpid()}/children").read(), flush=True)
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -9
    [hog] = done.stdout.split()
    deadline = time.monotonic() + 5
    while Path("/proc", hog).exists() and not is_zombie(hog) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path("/proc", hog).exists() or is_zombie(hog)


def is_zombie(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return False


def test_ranks_are_pinned_one_to_a_core_in_turn() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    code = "import os, crosswind.ingest.lab.faults as lab; lab.pin_to_core({}); print(os.sched_getaffinity(0))"
    for local_rank in (0, len(allowed) + 1):
        command = [sys.executable, "-c", code.format(local_rank)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert printed.strip() == str({allowed[local_rank % len(allowed)]})
