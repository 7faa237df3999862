import errno
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.ingest.descriptors import none_left, open_files
from tests.needs import KERNEL, ROOT, needs

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Scalar
from crosswind.ingest.collectors.perf import GROUPS, PERF, PerfCollector
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.perf_event import Target

STAT = "{pid} (python) S 1 1 1 0 -1 4194304 100 0 0 0 5 5 0 0 20 0 1 0 {start} 1000 100" + " 0" * 28


class FakePerf:
    """Counters that stand at 1000 times their event number and ran for as long as a test says."""

    def __init__(self, refused: dict[tuple[int, int], int] | None = None) -> None:
        self.refused = refused or {}  # errno by kind and number
        self.only_user = False
        self.own_only = False
        self.no_cores = True
        self.open_fds: dict[int, tuple[int, int, int, int]] = {}  # kind, number, pid, leader
        self.enabled_ns, self.running_ns = 2000, 2000
        self.broken: set[int] = set()
        self.made = 2

    def open(self, attributes: bytes, target: Target, leader: int) -> int:
        kind, _, number, _, _, _, flags = struct.unpack("=IIQQQQQ", attributes[:48])
        is_refused = (
            (self.only_user and not flags & 32) or (self.own_only and target.pid) or (self.no_cores and target.cpu >= 0)
        )
        code = errno.EACCES if is_refused else self.refused.get((kind, number))
        if code:
            raise OSError(code, os.strerror(code))
        self.made += 1
        self.open_fds[self.made] = (kind, number, target.pid, self.made if leader < 0 else leader)
        return self.made

    def identity(self, fd: int) -> int:
        return fd + 5000

    def enable(self, leader: int) -> None:
        assert leader in self.open_fds

    def read(self, leader: int, size: int) -> bytes:
        if leader in self.broken:
            raise OSError(errno.ECHILD, os.strerror(errno.ECHILD))
        group = [(fd, number) for fd, (_, number, _, head) in self.open_fds.items() if head == leader]
        pairs = [number for fd, number in group for number in (1000 * number + 7, fd + 5000)]
        return struct.pack(f"={3 + len(pairs)}Q", len(group), self.enabled_ns, self.running_ns, *pairs)

    def close(self, fd: int) -> None:
        del self.open_fds[fd]


def node(tmp_path: Path, *threads: int, start: int = 900) -> Path:
    """A node on which process 4242 runs with these threads, on two cores."""
    for thread in threads:
        (tmp_path / "proc/4242/task" / str(thread)).mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc/4242").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc/4242/stat").write_text(STAT.format(pid=4242, start=start))
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True, exist_ok=True)
    (tmp_path / "sys/devices/system/cpu/online").write_text("0,2-3\n")
    return tmp_path


def collector(root: Path, kernel: FakePerf, *, descriptors: int = 512) -> PerfCollector:
    return PerfCollector(lambda: [4242], root / "proc", root / "sys", kernel=kernel, descriptors=descriptors)


def values_of(perf: PerfCollector, device: str = "4242") -> dict[str, Scalar]:
    return {sample.device: dict(sample.values) for sample in perf.read()}[device]


def test_every_event_goes_to_its_column_with_the_times_of_its_group(tmp_path: Path) -> None:
    kernel = FakePerf()
    values = values_of(collector(node(tmp_path, 4242), kernel))
    assert values.pop("began_seconds")
    assert values == {
        "cycles_total": 7,
        "instructions_total": 1007,
        "reference_cycles_total": 9007,
        "cache_references_total": 2007,
        "cache_misses_total": 3007,
        "branches_total": 4007,
        "branch_misses_total": 5007,
        "cpu_clock_seconds_total": 7,
        "task_clock_seconds_total": 1007,
        "minor_page_faults_total": 5007,
        "major_page_faults_total": 6007,
        "context_switches_total": 3007,
        "migrations_total": 4007,
        "cgroup_switches_total": 11007,
        "alignment_faults_total": 7007,
        "emulation_faults_total": 8007,
        **{f"{group}_{time}_seconds_total": 2000 for group in GROUPS for time in ("enabled", "running")},
        "includes_kernel": True,
        "threads_at_start": 1,
    }


def test_threads_are_summed(tmp_path: Path) -> None:
    values = values_of(collector(node(tmp_path, 4242, 4250, 4251), FakePerf()))
    assert (values["instructions_total"], values["hardware_enabled_seconds_total"]) == (3021, 6000)
    assert values["threads_at_start"] == 3


def test_a_machine_without_counters_has_the_software_events_and_says_why(tmp_path: Path) -> None:
    kernel = FakePerf({(0, number): errno.ENOENT for number in range(10)})
    values = values_of(collector(node(tmp_path, 4242), kernel))
    assert values["minor_page_faults_total"] == 5007
    assert {"cycles_total", "hardware_enabled_seconds_total", "cache_running_seconds_total"}.isdisjoint(values)
    assert str(values["not_counted"]).startswith("ENOENT: cycles, instructions, reference_cycles, cache_references")


def test_counters_that_somebody_else_holds_have_no_values_but_their_times(tmp_path: Path) -> None:
    kernel = FakePerf()
    perf = collector(node(tmp_path, 4242), kernel)
    assert values_of(perf)["cycles_total"] == 7
    kernel.enabled_ns = 9000
    values = values_of(perf)
    assert "cycles_total" not in values
    assert (values["hardware_enabled_seconds_total"], values["hardware_running_seconds_total"]) == (9000, 2000)


def test_a_rank_that_sleeps_keeps_its_values(tmp_path: Path) -> None:
    perf = collector(node(tmp_path, 4242), FakePerf())
    assert values_of(perf) == values_of(perf)


def test_a_group_that_cannot_be_summed_takes_no_other_along(tmp_path: Path) -> None:
    kernel = FakePerf()
    perf = collector(node(tmp_path, 4242), kernel)
    assert "cycles_total" in values_of(perf)
    kernel.broken = {fd for fd, (kind, number, _, _) in kernel.open_fds.items() if (kind, number) == (0, 0)}
    values = values_of(perf)
    assert "cycles_total" not in values
    assert values["cache_misses_total"] == 3007


def test_without_the_right_to_count_in_the_kernel_the_program_alone_is_counted(tmp_path: Path) -> None:
    kernel = FakePerf()
    kernel.only_user = True
    values = values_of(collector(node(tmp_path, 4242), kernel))
    assert values["includes_kernel"] is False
    assert values["cycles_total"] == 7
    assert {"context_switches_total", "migrations_total", "cgroup_switches_total"}.isdisjoint(values)
    assert values["not_counted"] == "EACCES: context_switches, migrations, cgroup_switches"


def test_cores_are_counted_where_that_is_allowed(tmp_path: Path) -> None:
    kernel = FakePerf()
    kernel.no_cores = False
    devices = [sample.device for sample in collector(node(tmp_path, 4242), kernel).read()]
    assert devices == ["4242", "cpu0", "cpu2", "cpu3"]


def test_another_users_rank_is_refused_with_the_setting_that_decides(tmp_path: Path) -> None:
    kernel = FakePerf()
    kernel.own_only = True
    with pytest.raises(UnavailableError, match=r"EACCES, Permission denied; see .*perf_event_paranoid"):
        list(collector(node(tmp_path, 4242), kernel).read())


def test_what_does_not_fit_into_the_descriptors_is_left_out_and_reported(tmp_path: Path) -> None:
    kernel = FakePerf()
    perf = collector(node(tmp_path, 4242, 4243), kernel, descriptors=30)
    values = values_of(perf)
    assert (values["instructions_total"], values["minor_page_faults_total"]) == (2014, 10014)
    assert values["not_counted"] == "EMFILE: cache_references, cache_misses, branches, branch_misses"
    assert len(kernel.open_fds) == 24


def test_a_rank_with_more_threads_than_descriptors_says_so_and_leaves_them_to_others(tmp_path: Path) -> None:
    kernel = FakePerf()
    kernel.no_cores = False
    perf = collector(node(tmp_path, *range(4242, 4256)), kernel, descriptors=40)
    samples = {sample.device: sample.values for sample in perf.read()}
    reason = "all: EMFILE, 224 descriptors are needed, 40 are left; raise RLIMIT_NOFILE"
    assert samples["4242"] == {"not_counted": reason}
    assert samples["cpu0"]["cycles_total"] == 7


def test_a_rank_stays_counted_when_its_state_cannot_be_read_for_want_of_descriptors(tmp_path: Path) -> None:
    perf = collector(node(tmp_path, 4242), FakePerf())
    before = values_of(perf)
    with none_left(), pytest.raises(UnavailableError, match="4242/stat: Too many open files"):
        list(perf.read())
    assert values_of(perf) == before


def test_what_others_keep_open_of_a_rank_stays_open_when_it_cannot_be_counted(tmp_path: Path) -> None:
    files, path = KernelFiles(), f"/proc/{os.getpid()}/status"
    files.read(path)
    kernel = FakePerf()
    kernel.own_only = True
    perf = PerfCollector(lambda: [os.getpid()], Path("/proc"), tmp_path, files, kernel=kernel)
    with pytest.raises(UnavailableError, match="EACCES"):
        list(perf.read())
    assert path in open_files()
    files.close()


def test_a_rank_that_ended_is_gone_with_its_descriptors(tmp_path: Path) -> None:
    kernel = FakePerf()
    perf = collector(node(tmp_path, 4242), kernel)
    assert len(list(perf.read())) == 1
    (tmp_path / "proc/4242/stat").unlink()
    assert list(perf.read()) == []
    assert kernel.open_fds == {}


def test_a_pid_used_again_begins_anew(tmp_path: Path) -> None:
    kernel = FakePerf()
    perf = collector(node(tmp_path, 4242), kernel)
    first = values_of(perf)
    node(tmp_path, 4242, start=901)
    assert values_of(perf)["began_seconds"] != first["began_seconds"]
    assert len(kernel.open_fds) == 16


def test_a_collector_that_is_dropped_lets_go_of_its_descriptors(tmp_path: Path) -> None:
    kernel = FakePerf()
    perf = collector(node(tmp_path, 4242), kernel)
    assert len(list(perf.read())) == 1
    del perf
    assert kernel.open_fds == {}


WORK = """
import mmap, resource, subprocess, sys, threading, time
def used():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_minflt for each in both), sum(each.ru_nvcsw + each.ru_nivcsw for each in both)
def touch(pages):
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(pages):
        memory[page * mmap.PAGESIZE] = 1
print("ready", flush=True)
sys.stdin.readline()
before = used()
touch(1000)
thread = threading.Thread(target=touch, args=(2000,))
thread.start(); thread.join()
subprocess.run([sys.executable, "-c", "pass"], check=True)
for _ in range(300):
    time.sleep(0.0005)
print(*(after - earlier for earlier, after in zip(before, used())), flush=True)
sys.stdin.readline()
"""


@contextmanager
def child() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", WORK], stdin=-1, stdout=-1, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@needs(KERNEL, "perf_event_open is refused", unless=PerfCollector().available())
def test_faults_and_switches_of_a_process_its_threads_and_children_are_those_that_getrusage_has() -> None:
    with child() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05)  # it waits for its first line
        perf = PerfCollector(lambda: [process.pid], with_cores=False)
        before = values_of(perf, str(process.pid))
        process.stdin.write("go\n")
        process.stdin.flush()
        faults, switches = map(int, process.stdout.readline().split())
        after = values_of(perf, str(process.pid))
    if not after["includes_kernel"]:
        pytest.skip(f"needs {ROOT}: counting in the kernel")
    counted = {name: after[name] - before[name] for name in ("minor_page_faults_total", "context_switches_total")}  # type: ignore[operator]
    assert faults > 3000
    assert switches > 300
    # Both count the same events. The lines that it reads and writes fall between the two, and on a busy machine so do
    # the times that its core is taken away meanwhile.
    assert counted["minor_page_faults_total"] == pytest.approx(faults, abs=100)
    assert counted["context_switches_total"] == pytest.approx(switches, abs=30)


@needs(KERNEL, "perf_event_open is refused", unless=PerfCollector().available())
def test_no_descriptor_is_left_when_a_process_has_ended() -> None:
    at_first = open_files()
    with child() as process:
        perf = PerfCollector(lambda: [process.pid], with_cores=False)
        between = open_files()
        assert PERF.convert(next(iter(perf.read())))["threads_at_start"] == 1
        assert open_files() - between
    assert list(perf.read()) == []
    assert not open_files() - at_first
