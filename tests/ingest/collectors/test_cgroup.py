import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.ingest.trees import recorded_tree
from tests.needs import KERNEL, needs

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Scalar
from crosswind.ingest.collectors.cgroup import CGROUP, CgroupCollector
from crosswind.ingest.kernel.cgroup_tree import jobs_and_steps

JOB_2 = "/system.slice/cn07_slurmstepd.scope/job_4711"
JOB_1 = "/slurm_cn07/uid_1000/job_4711"
MOUNTS = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"


def rows(collector: CgroupCollector) -> dict[str, dict[str, Scalar]]:
    return {sample.device: dict(sample.values) for sample in collector.read()}


def recorded(tree: str) -> dict[str, dict[str, Scalar]]:
    cgroups = rows(CgroupCollector(recorded_tree(tree), lambda: [4242]))
    for values in cgroups.values():
        assert values.pop("generation")
    return cgroups


def node(tmp_path: Path, *groups: str, **files: str) -> CgroupCollector:
    """A node of version 2 whose process 4242 is in the last of these groups, each with these files (`_` for a dot)."""
    (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc/self/mounts").write_text(MOUNTS)
    (tmp_path / "proc/4242").mkdir(exist_ok=True)
    (tmp_path / "proc/4242/cgroup").write_text(f"0::{groups[-1]}\n")
    for group in groups:
        folder = tmp_path / f"sys/fs/cgroup{group}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (files or {"pids_current": "5\n"}).items():
            (folder / name.replace("_", ".")).write_text(text)
    return CgroupCollector(tmp_path, lambda: [4242])


def test_version_2_reports_the_task_its_step_and_its_job() -> None:
    cgroups = recorded("slurm_v2")
    assert list(cgroups) == [JOB_2, f"{JOB_2}/step_0", f"{JOB_2}/step_0/user/task_0"]
    assert cgroups[f"{JOB_2}/step_0/user/task_0"] == {
        "cpu_seconds_total": 1284950 * 1000,
        "user_seconds_total": 1019106 * 1000,
        "system_seconds_total": 265844 * 1000,
        "throttled_seconds_total": 84215 * 1000,
        "periods_total": 310,
        "throttled_periods_total": 12,
        "memory_bytes": 4831838208,
        "memory_peak_bytes": 5368709120,
        "swap_bytes": 4096,
        "anonymous_bytes": 3221225472,
        "file_bytes": 1476395008,
        "shared_bytes": 536870912,
        "mapped_bytes": 107340800,
        "dirty_bytes": 40960,
        "writeback_bytes": 8192,
        "kernel_bytes": 134217728,
        "slab_bytes": 67108864,
        "page_faults_total": 1134894,
        "major_page_faults_total": 209,
        "refaulted_anonymous_pages_total": 3,
        "refaulted_file_pages_total": 21412,
        "memory_high_total": 5,
        "memory_limit_hits_total": 2,
        "ooms_total": 1,
        "oom_kills_total": 1,
        "read_bytes_total": 90112 + 1000,
        "written_bytes_total": 4096,
        "reads_total": 22 + 3,
        "writes_total": 1,
        "tasks": 17,
        "rdma_handles": 3,
        "rdma_objects": 2023,
        "cpu_waiting_seconds_total": 501,
        "cpu_stalled_seconds_total": 101,
        "memory_waiting_seconds_total": 502,
        "memory_stalled_seconds_total": 102,
        "io_waiting_seconds_total": 503,
        "io_stalled_seconds_total": 103,
        "is_populated": True,
    }


def test_version_1_fills_the_same_columns_from_one_tree_a_controller() -> None:
    cgroups = recorded("slurm_v1")
    assert list(cgroups) == [JOB_1, f"{JOB_1}/step_0", f"{JOB_1}/step_0/task_0", "/system.slice/slurmd.service"]
    assert cgroups[f"{JOB_1}/step_0/task_0"] == {
        "cpu_seconds_total": 1284950123456,
        "user_seconds_total": 101910 * 10_000_000,  # USER_HZ is 100 on every Linux in use
        "system_seconds_total": 26584 * 10_000_000,
        "cpu_period_seconds": 100000,
        "periods_total": 310,
        "throttled_periods_total": 12,
        "throttled_seconds_total": 84215000123,
        "memory_bytes": 4831838208,
        "memory_peak_bytes": 5368709120,
        "memory_limit_hits_total": 2,
        "kernel_bytes": 134217728,
        "anonymous_bytes": 3221225472,
        "file_bytes": 1476395008,
        "shared_bytes": 536870912,
        "mapped_bytes": 107340800,
        "dirty_bytes": 40960,
        "writeback_bytes": 8192,
        "swap_bytes": 4096,
        "page_faults_total": 1134894,
        "major_page_faults_total": 209,
        "refaulted_anonymous_pages_total": 3,
        "refaulted_file_pages_total": 21412,
        "oom_kills_total": 1,
    }


def test_version_1_sums_storage_over_disks_and_directions() -> None:
    assert recorded("slurm_v1")["/system.slice/slurmd.service"] == {
        "read_bytes_total": 90112 + 1000,
        "written_bytes_total": 4096,
        "reads_total": 25,
        "writes_total": 1,
        "tasks": 17,
    }


@pytest.mark.parametrize(("tree", "job", "task"), [("slurm_v1", JOB_1, "task_0"), ("slurm_v2", JOB_2, "user/task_0")])
def test_a_limit_is_in_bytes_and_no_limit_is_missing(tree: str, job: str, task: str) -> None:
    cgroups = recorded(tree)
    assert cgroups[job]["memory_limit_bytes"] == 34359738368
    assert "memory_limit_bytes" not in cgroups[f"{job}/step_0/{task}"]


@pytest.mark.parametrize(("tree", "job"), [("slurm_v1", JOB_1), ("slurm_v2", JOB_2)])
def test_a_limit_of_cpu_time_is_a_quota_a_period_and_no_limit_is_missing(tree: str, job: str) -> None:
    cgroups = recorded(tree)
    assert (cgroups[job]["cpu_quota_seconds"], cgroups[job]["cpu_period_seconds"]) == (800000, 100000)
    assert "cpu_quota_seconds" not in cgroups[f"{job}/step_0"]


def test_times_of_both_versions_become_seconds() -> None:
    for tree in ("slurm_v1", "slurm_v2"):
        for sample in CgroupCollector(recorded_tree(tree), lambda: [4242]).read():
            if sample.device.endswith("task_0"):
                seconds = CGROUP.convert(sample)
                assert seconds["user_seconds_total"] == pytest.approx(1019.1 if tree == "slurm_v1" else 1.019106)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/system.slice/slurmstepd.scope/job_7/step_batch/user/task_special", ["job_7", "step_batch"]),
        ("/system.slice/gpu-03.site_slurmstepd.scope/job_7/step_extern/user/task_0", ["job_7", "step_extern"]),
        ("/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0", ["s5K1KKYAYG5D00", "step_0"]),
        ("/system.slice/slurmstepd.scope/system", []),
        ("/slurm/uid_1000/job_7/step_0/task_2", ["job_7", "step_0"]),
        ("/slurm_gpu-03/uid_1000/job_7", ["job_7"]),
        ("/pbspro.service/jobid/1234.pbs01", ["1234.pbs01"]),
        ("/user.slice/user-1000.slice/session-2.scope", []),
    ],
)
def test_jobs_and_steps_are_found_whatever_the_node_is_called(place: str, expected: list[str]) -> None:
    assert [cgroup.rpartition("/")[2] for cgroup in jobs_and_steps(place)] == expected
    assert all(place.startswith(cgroup) for cgroup in jobs_and_steps(place))


def test_groups_can_be_named_in_the_settings(tmp_path: Path) -> None:
    node(tmp_path, "/system.slice/sshd.service", "/user.slice")
    collector = CgroupCollector(tmp_path, paths=("/system.slice/sshd.service", "/../escape", "relative", "/gone"))
    assert list(rows(collector)) == ["/system.slice/sshd.service"]


def test_the_root_and_groups_outside_of_the_agents_namespace_are_none(tmp_path: Path) -> None:
    collector = node(tmp_path, "/")
    assert rows(collector) == {}
    (tmp_path / "proc/4242/cgroup").write_text("0::/../../system.slice/x\n")
    assert rows(CgroupCollector(tmp_path, lambda: [4242])) == {}


def test_a_process_that_is_new_is_seen_at_once(tmp_path: Path) -> None:
    node(tmp_path, "/a")
    pids = list[int]()
    collector = CgroupCollector(tmp_path, lambda: pids)
    assert rows(collector) == {}
    pids.append(4242)
    assert list(rows(collector)) == ["/a"]


def test_a_step_that_ended_is_gone_at_once_and_its_job_stays(tmp_path: Path) -> None:
    job = "/system.slice/slurmstepd.scope/job_1"
    collector = node(tmp_path, job, f"{job}/step_0")
    assert list(rows(collector)) == [job, f"{job}/step_0"]
    shutil.rmtree(tmp_path / f"sys/fs/cgroup{job}/step_0")
    assert list(rows(collector)) == [job]


def test_a_group_made_anew_has_another_generation(tmp_path: Path) -> None:
    collector = node(tmp_path, "/a")
    first = rows(collector)["/a"]["generation"]
    (tmp_path / "sys/fs/cgroup/a").rename(tmp_path / "old")
    node(tmp_path, "/a")
    assert rows(collector)["/a"]["generation"] != first


@pytest.mark.parametrize("text", ["", "garbage\n", "-5\n", "1e9\n", "9" * 30, "\0" * 100])
def test_a_garbled_file_is_left_out_and_takes_no_other_along(tmp_path: Path, text: str) -> None:
    collector = node(
        tmp_path, "/a", pids_current="5\n", memory_current=text, cpu_stat=text, io_stat=text, io_pressure=text
    )
    assert rows(collector)["/a"].keys() == {"tasks", "generation"}


def test_a_number_that_is_garbled_is_never_read(tmp_path: Path) -> None:
    collector = node(
        tmp_path, "/a", cpu_stat="usage_usec 12x\n", io_stat="8:0 rbytes=-1\n", cpu_pressure="some total=x\n"
    )
    assert rows(collector)["/a"].keys() == {"generation"}


def blkio(tmp_path: Path, **files: str) -> CgroupCollector:
    collector = node(tmp_path, "/a")
    (tmp_path / "proc/self/mounts").write_text("cgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0\n")
    (tmp_path / "proc/4242/cgroup").write_text("5:blkio:/a\n")
    folder = tmp_path / "sys/fs/cgroup/blkio/a"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / f"blkio.throttle.{name}").write_text(text)
    return collector


def test_a_sum_over_the_groups_below_is_preferred(tmp_path: Path) -> None:
    texts = {"io_service_bytes": "8:0 Read 5\nTotal 5\n", "io_service_bytes_recursive": "8:0 Read 50\nTotal 50\n"}
    collector = blkio(tmp_path, **texts)
    (tmp_path / "sys/fs/cgroup/blkio/a/below").mkdir()
    assert rows(collector)["/a"]["read_bytes_total"] == 50


def test_the_share_of_the_group_alone_is_not_taken_for_that_of_all_below(tmp_path: Path) -> None:
    collector = blkio(tmp_path, io_service_bytes="8:0 Read 5\nTotal 5\n")
    (tmp_path / "sys/fs/cgroup/blkio/a/below").mkdir()
    assert rows(collector) == {}


def test_a_group_that_did_nothing_has_read_0_bytes(tmp_path: Path) -> None:
    collector = blkio(tmp_path, io_service_bytes_recursive="Total 0\n")
    assert rows(collector)["/a"]["read_bytes_total"] == 0


def test_without_a_cgroup_file_system_the_source_is_down(tmp_path: Path) -> None:
    collector = node(tmp_path, "/a")
    (tmp_path / "proc/self/mounts").write_text("proc /proc proc rw 0 0\n")
    assert not collector.available()
    with pytest.raises(UnavailableError, match="proc/self/mounts: expected a mounted cgroup"):
        rows(collector)


BUSY = "import time\nwhile time.process_time() < 0.15: pass\nprint('done', flush=True)\ntime.sleep(60)"


def own_place(controller: str) -> str | None:
    """Return this process's place in the tree of a controller, or None where there is none that root may change."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    places = [place for _, names, place in lines if controller in names.split(",")]
    mounts = [line.split(" ") for line in Path("/proc/self/mounts").read_text().splitlines()]
    folders = [
        mount[1]
        for mount in mounts
        if (mount[2] == "cgroup2" if controller == "" else mount[2] == "cgroup" and controller in mount[3].split(","))
    ]
    if not places or not folders or not os.access(f"{folders[0]}{places[0]}", os.W_OK):
        return None
    return f"{folders[0]}{places[0]}".rstrip("/")


@contextmanager
def busy_in(controller: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that computes for 0.15 s in a group of its own, and the name of it."""
    name = f"crosswind_test_{os.getpid()}"
    folder = Path(f"{own_place(controller)}/{name}")
    folder.mkdir()
    process = subprocess.Popen([sys.executable, "-c", f"input()\n{BUSY}"], stdin=-1, stdout=-1, text=True)
    try:
        (folder / "cgroup.procs").write_text(str(process.pid))
        yield process, name
    finally:
        process.kill()
        process.communicate()
        remove(folder)


def remove(folder: Path) -> None:
    until = time.monotonic() + 5
    while (folder / "cgroup.procs").read_text() and time.monotonic() < until:  # what was killed has yet to leave
        time.sleep(0.01)
    folder.rmdir()


def after_work(process: subprocess.Popen[str], name: str) -> dict[str, Scalar]:
    assert process.stdin is not None
    assert process.stdout is not None
    collector = CgroupCollector(pids=lambda: [process.pid])
    before = [values for device, values in rows(collector).items() if device.endswith(name)]
    assert len(before) == 1
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"
    return next(values for device, values in rows(collector).items() if device.endswith(name))


@needs(KERNEL, "no group of version 2 can be made", unless=own_place("") is not None)
def test_on_this_machine_version_2_reports_the_time_of_a_process() -> None:
    with busy_in("") as (process, name):
        values = after_work(process, name)
    assert isinstance(values["cpu_seconds_total"], int)
    assert 0.1e9 < values["cpu_seconds_total"] < 0.5e9  # 0.15 s, of which starting Python may come before the move
    assert values["is_populated"] is True


@needs(KERNEL, "no group of version 2 can be made", unless=own_place("") is not None)
@needs(KERNEL, "it measures no pressure", unless=Path("/proc/pressure/cpu").exists())
def test_on_this_machine_two_on_one_core_wait_for_it() -> None:
    core = min(os.sched_getaffinity(0))
    with busy_in("") as (process, name):
        os.sched_setaffinity(process.pid, {core})
        other = subprocess.Popen([sys.executable, "-c", BUSY], stdout=-1)
        os.sched_setaffinity(other.pid, {core})
        try:
            values = after_work(process, name)
        finally:
            other.kill()
            other.communicate()
    assert isinstance(values["cpu_waiting_seconds_total"], int)
    assert CGROUP["cpu_waiting_seconds_total"].scale * values["cpu_waiting_seconds_total"] > 0.02


@needs(KERNEL, "no group of version 1", unless=None not in (own_place("cpu"), own_place("cpuacct")))
def test_on_this_machine_version_1_reports_the_time_and_the_throttling_of_a_process() -> None:
    with busy_in("cpuacct") as (process, name), limited(process, name):
        values = after_work(process, name)
    assert isinstance(values["cpu_seconds_total"], int)
    assert 0.1e9 < values["cpu_seconds_total"] < 0.5e9
    assert isinstance(values["throttled_periods_total"], int)
    assert values["throttled_periods_total"] >= 3  # 0.1 s or more, of which a period gives 0.005 s
    assert isinstance(values["throttled_seconds_total"], int)
    assert 0.1e9 < values["throttled_seconds_total"] < 5e9


@contextmanager
def limited(process: subprocess.Popen[str], name: str) -> Iterator[None]:
    folder = Path(f"{own_place('cpu')}/{name}")
    folder.mkdir()
    try:
        (folder / "cpu.cfs_period_us").write_text("50000")
        (folder / "cpu.cfs_quota_us").write_text("5000")
        (folder / "cgroup.procs").write_text(str(process.pid))
        yield
    finally:
        Path(f"{own_place('cpu')}/cgroup.procs").write_text(str(process.pid))
        folder.rmdir()
