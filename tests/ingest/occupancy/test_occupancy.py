import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.metric import Sample, with_node_keys
from crosswind.ingest.agent.loop import Agent
from crosswind.ingest.agent.sweep import Sweep
from crosswind.ingest.collectors.occupancy import MAX_TEXT, OCCUPANCY, OccupancyCollector
from crosswind.ingest.occupancy.occupancy import LOOK_SECONDS, MAX_JOBS, Occupancy, Seen
from crosswind.ingest.spool.registration import announce, withdraw
from crosswind.ingest.spool.spool import SpoolWriter

SLEEP = [sys.executable, "-c", "input()"]
TASK = {
    "SLURM_JOB_ID": "987002",
    "SLURM_STEP_ID": "1",
    "SLURM_PROCID": "2",
    "SLURM_LOCALID": "0",
    "SLURM_NTASKS": "4",
    "SLURM_CPUS_ON_NODE": "2",
    "SLURM_JOB_GPUS": "0,3",
    "SLURM_CLUSTER_NAME": "lab",
    "SLURMD_NODENAME": "n1",
    "CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2",
}


@pytest.fixture
def task() -> Iterator[subprocess.Popen[bytes]]:
    """A process as srun would have started it."""
    with subprocess.Popen(SLEEP, stdin=subprocess.PIPE, env=os.environ | TASK) as process:
        wait_for_exec(process.pid)
        yield process


def wait_for_exec(pid: int) -> None:
    deadline = time.monotonic() + 20
    while b"SLURM_PROCID" not in Path(f"/proc/{pid}/environ").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def records_of(occupancy: Occupancy, job_id: str = "987002") -> list[tuple[str, dict[str, object]]]:
    return [(record, dict(value)) for record, value in occupancy.records() if value.get("job_id") == job_id]


def announced_in(occupancy: Occupancy) -> list[int]:
    """Processes of ranks that announced themselves: this machine's other tests start tasks of Slurm."""
    return [placement.pid for placement in occupancy.placements() if placement.run_id == "r1"]


def start_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_a_rank_is_reported_once_when_it_comes_and_once_when_it_ends(task: subprocess.Popen[bytes]) -> None:
    before = time.time_ns()
    occupancy = Occupancy("n1.example.org")
    occupancy.refresh()
    begun = dict(records_of(occupancy))
    started_ns = begun["placement"].pop("started_ns")
    assert begun["allocation"].pop("started_ns") == started_ns
    assert before - 5_000_000_000 < int(str(started_ns)) < before + 20_000_000  # a clock tick is 10 ms
    place = {"node": "n1", "sampled_as": "n1.example.org", "system": "lab", "job_id": "987002"}
    assert begun["placement"] == place | {
        "source": "environment",
        "pid": task.pid,
        "start_ticks": start_ticks(task.pid),
        "step_id": "1",
        "rank": 2,
        "local_rank": 0,
        "world_size": 4,
        "gpus": ["GPU-1", "GPU-2"],
    }
    assert begun["allocation"] == place | {
        "source": "environment",
        "restart_count": 0,
        "uid": os.geteuid(),
        "gpus": ["0", "3"],
        "cpus": 2,
    }
    occupancy.refresh()
    assert records_of(occupancy) == []
    task.communicate(b"\n")
    occupancy.refresh()
    ended = dict(records_of(occupancy))
    assert ended["placement"]["ended_ns"] == ended["allocation"]["ended_ns"]
    assert before < int(str(ended["placement"]["ended_ns"])) <= time.time_ns()
    assert task.pid not in occupancy.pids()


@pytest.mark.parametrize(("slurmd", "is_seen"), [("n1", True), ("n2", False), (None, True)])
def test_an_agent_inside_a_job_leaves_the_processes_of_other_slurmd_on_the_host_alone(
    task: subprocess.Popen[bytes], slurmd: str | None, is_seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if slurmd is None:
        monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    else:
        monkeypatch.setenv("SLURMD_NODENAME", slurmd)
    occupancy = Occupancy(slurmd or "host")
    occupancy.refresh()
    assert (task.pid in occupancy.pids()) is is_seen
    assert ("987002" in occupancy.seen.job_ids) is is_seen


def test_a_rank_that_nobody_reaped_has_ended(task: subprocess.Popen[bytes]) -> None:
    occupancy = Occupancy("n1")
    occupancy.refresh()
    assert task.pid in occupancy.pids()
    task.kill()
    os.waitid(os.P_PID, task.pid, os.WEXITED | os.WNOWAIT)
    occupancy.refresh()
    assert task.pid not in occupancy.pids()


def test_a_record_that_the_spool_refused_is_reported_again(task: subprocess.Popen[bytes]) -> None:
    occupancy = Occupancy("n1")
    occupancy.refresh()
    expected = dict(next(occupancy.records())[1])  # the disk is full: nobody asks for the next one
    assert dict(next(occupancy.records())[1]) == expected


def test_a_record_that_is_invalid_is_lost_and_counted_and_holds_no_other_up(task: subprocess.Popen[bytes]) -> None:
    taken: list[str] = []

    def take(record: str, value: Mapping[str, object]) -> None:
        if value.get("pid") == task.pid:
            raise InvalidInputError("what JSON cannot say")
        if value.get("job_id") == "987002":
            taken.append(record)

    occupancy = Occupancy("n1")
    occupancy.refresh()
    occupancy.hand_to(take)
    occupancy.hand_to(take)
    assert (taken, occupancy.seen.lost_records_total) == (["allocation"], 1)
    occupancy.refresh()
    [sample] = OccupancyCollector(occupancy).read()
    assert sample.values["lost_records_total"] == 1


@contextmanager
def no_descriptors() -> Iterator[None]:
    """This process may open nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_with_nothing_left_to_open_files_with_nothing_ends_and_the_next_look_makes_up_for_it(
    task: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    jobs = tmp_path / "job.d"
    jobs.mkdir()
    (jobs / "5.json").write_text(json.dumps({"job_id": "5", "started_ns": 100}))
    occupancy = Occupancy("n1", run_directory=tmp_path, job_directory=jobs)
    announce(tmp_path, run_id="r1", rank=2, node="n1", pid=task.pid)
    occupancy.refresh()
    occupancy.hand_to(lambda record, value: None)
    before = sorted(occupancy.pids())
    assert task.pid in before
    (jobs / "6.json").write_text(json.dumps({"job_id": "6", "started_ns": 100}))
    with no_descriptors():
        occupancy.look(now=True)
        occupancy.look()
    assert "Too many open files" in str(occupancy.seen.reason)
    assert (sorted(occupancy.pids()), list(occupancy.records())) == (before, [])
    occupancy.refresh()
    assert {"5", "6", "987002"} <= set(occupancy.seen.job_ids)
    job_ids = [value.get("job_id") for _, value in occupancy.records()]
    assert (sorted(occupancy.pids()), job_ids.count("5"), job_ids.count("6")) == (before, 0, 1)


def test_an_agent_that_starts_with_nothing_to_open_files_with_sees_all_later(tmp_path: Path) -> None:
    (tmp_path / "5.json").write_text(json.dumps({"job_id": "5"}))
    rank = announce(tmp_path, run_id="r1", rank=0, node="n1")
    occupancy = Occupancy("n1", run_directory=tmp_path, job_directory=tmp_path)
    with no_descriptors():
        occupancy.look()
    occupancy.look(now=True)
    assert "5" in occupancy.seen.job_ids
    assert rank.pid in occupancy.pids()


def test_an_announcement_after_the_environment_makes_one_placement_of_both(
    task: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    occupancy = Occupancy("n1.example.org", run_directory=tmp_path)
    occupancy.refresh()
    [(_, placement)] = [record for record in records_of(occupancy) if record[0] == "placement"]
    announce(tmp_path, run_id="01RUN", rank=2, node="n1", pid=task.pid)
    occupancy.refresh()
    [(_, merged)] = records_of(occupancy)
    assert merged == placement | {"run_id": "01RUN", "source": "probe"}
    withdraw(tmp_path, task.pid)


def test_a_job_file_reports_start_and_end_and_is_removed_once_the_end_was_taken(tmp_path: Path) -> None:
    path = tmp_path / "5.json"
    path.write_text(json.dumps({"job_id": "5", "node": "n1", "uid": 7, "started_ns": 100}))
    occupancy = Occupancy("n1", job_directory=tmp_path)
    occupancy.refresh()
    assert "5" in occupancy.seen.job_ids
    [(_, begun)] = records_of(occupancy, "5")
    path.write_text(json.dumps({"job_id": "5", "node": "n1", "uid": 7, "started_ns": 100, "ended_ns": 900}))
    occupancy.refresh()
    assert "5" not in occupancy.seen.job_ids
    assert path.exists()
    assert records_of(occupancy, "5") == [("allocation", begun | {"ended_ns": 900})]
    assert not path.exists()
    occupancy.refresh()
    assert records_of(occupancy, "5") == []


def test_a_job_with_a_file_does_not_end_with_its_last_process(task: subprocess.Popen[bytes], tmp_path: Path) -> None:
    value = {"job_id": "987002", "node": "n1", "system": "lab", "uid": os.geteuid(), "started_ns": 100}
    (tmp_path / "987002.json").write_text(json.dumps(value))
    occupancy = Occupancy("n1", job_directory=tmp_path)
    occupancy.refresh()
    records_of(occupancy)
    task.communicate(b"\n")
    occupancy.refresh()
    assert [record for record, _ in records_of(occupancy)] == ["placement"]
    assert "987002" in occupancy.seen.job_ids


def test_who_names_another_users_job_is_not_believed(task: subprocess.Popen[bytes], tmp_path: Path) -> None:
    value = {"job_id": "987002", "uid": os.geteuid() + 1}
    (tmp_path / "987002.json").write_text(json.dumps(value))
    occupancy = Occupancy("n1", job_directory=tmp_path)
    occupancy.refresh()
    assert task.pid not in occupancy.pids()
    assert [value["source"] for _, value in records_of(occupancy)] == ["prolog"]


def test_a_value_that_does_not_fit_is_reported_once_by_name_alone(caplog: pytest.LogCaptureFixture) -> None:
    with subprocess.Popen(SLEEP, stdin=subprocess.PIPE, env=os.environ | TASK | {"RANK": "secret"}) as process:
        wait_for_exec(process.pid)
        occupancy = Occupancy("n1")
        occupancy.refresh()
        occupancy.refresh()
        assert process.pid in occupancy.pids()
        process.communicate(b"\n")
    [message] = [record.getMessage() for record in caplog.records if "RANK" in record.getMessage()]
    assert message == f"RANK in the environment of process {process.pid} does not fit: left out"


def test_the_collector_shows_what_was_seen() -> None:
    occupancy = Occupancy("n1")
    occupancy.seen = Seen(("12", "7_3"), ranks=4, unreadable_processes=9, garbled_files=1, lost_records_total=3)
    counts = {"jobs": 2, "ranks": 4, "unreadable_processes": 9, "garbled_files": 1, "lost_records_total": 3}
    assert list(OccupancyCollector(occupancy).read()) == [Sample("node", {"job_ids": "12,7_3"} | counts)]


def test_very_many_jobs_are_cut_between_two() -> None:
    occupancy = Occupancy("n1")
    occupancy.seen = Seen(tuple(str(number) for number in range(100_000, 101_000)))
    [sample] = OccupancyCollector(occupancy).read()
    job_ids = str(sample.values["job_ids"]).split(",")
    assert sample.values["jobs"] == 1000
    assert job_ids == [str(100_000 + number) for number in range(len(job_ids))]
    assert MAX_TEXT - 7 < len(str(sample.values["job_ids"])) <= MAX_TEXT


def test_without_a_proc_tree_it_is_unavailable_and_the_loop_goes_on(tmp_path: Path) -> None:
    occupancy = Occupancy("n1", proc=tmp_path / "missing")
    occupancy.refresh()
    collector = OccupancyCollector(occupancy)
    assert not collector.available()
    with pytest.raises(UnavailableError, match="missing"):
        list(collector.read())


def test_no_column_is_the_agents_own() -> None:
    assert len(with_node_keys(OCCUPANCY).columns) > len(OCCUPANCY.columns)


def test_a_process_whose_environment_is_hidden_is_counted_and_a_kernel_thread_is_not(tmp_path: Path) -> None:
    for pid, flags in ((41, 0x00208040), (42, 0x00400000)):  # kthreadd's child; an ordinary process
        (tmp_path / str(pid)).mkdir()
        fields = f"S 2 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 35 0 0 18446744073709551615"
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b) {fields}\n")
    occupancy = Occupancy("n1", proc=tmp_path)
    occupancy.refresh()
    assert occupancy.seen == Seen(unreadable_processes=1)


def test_a_look_sees_files_that_came_at_once_and_goes_through_the_processes_now_and_then(tmp_path: Path) -> None:
    occupancy = Occupancy("n1", run_directory=tmp_path)
    occupancy.look()
    rank = announce(tmp_path, run_id="r1", rank=0, node="n1")
    occupancy.look()
    assert announced_in(occupancy) == [rank.pid]
    seen = occupancy.seen
    occupancy.look()
    assert occupancy.seen is seen  # nothing came or went: nobody was looked at
    withdraw(tmp_path)
    occupancy.look()
    assert announced_in(occupancy) == []


def test_a_rank_that_ended_is_seen_at_the_next_look(tmp_path: Path) -> None:
    occupancy = Occupancy("n1", run_directory=tmp_path)
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        announce(tmp_path, run_id="r1", rank=0, node="n1", pid=sleeper.pid)
        occupancy.look()
        assert announced_in(occupancy) == [sleeper.pid]
        sleeper.kill()
    occupancy.look()
    assert announced_in(occupancy) == []


def test_a_look_now_goes_through_the_processes_whatever_the_time(task: subprocess.Popen[bytes]) -> None:
    occupancy = Occupancy("n1")
    occupancy.look()
    with subprocess.Popen(SLEEP, stdin=subprocess.PIPE, env=os.environ | TASK | {"SLURM_PROCID": "3"}) as process:
        wait_for_exec(process.pid)
        occupancy.look()
        assert process.pid not in occupancy.pids()
        occupancy.look(now=True)
        assert process.pid in occupancy.pids()
        process.communicate(b"\n")


def test_an_agent_that_ends_looks_once_more_at_all_processes(tmp_path: Path) -> None:
    occupancy = Occupancy("n1")
    with SpoolWriter(tmp_path, "n1") as spool:
        sweep = Sweep([], spool, node="n1", boot_id=None)
        agent = Agent(sweep, spool, interval_seconds=1.0, occupancy=occupancy)
        agent.sweep()
        with subprocess.Popen(SLEEP, stdin=subprocess.PIPE, env=os.environ | TASK) as process:
            wait_for_exec(process.pid)
            agent.finish()
            assert process.pid in occupancy.pids()
            process.communicate(b"\n")
        assert list(occupancy.records()) == []  # the spool has them


def write_process(proc: Path, pid: int, ticks: int, environment: bytes, groups: bytes = b"0::/\n") -> None:
    folder = proc / str(pid)
    folder.mkdir()
    fields = f"S 1 0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 {ticks} 0 0 18446744073709551615"
    (folder / "stat").write_text(f"{pid} (python) {fields}\n")
    (folder / "environ").write_bytes(environment)
    (folder / "cgroup").write_bytes(groups)


def test_a_process_that_was_read_before_its_exec_waits_no_longer_than_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loadavg").write_text("0.00 0.01 0.05 1/96 41\n")
    now_ticks = time.clock_gettime_ns(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") // 10**9
    write_process(tmp_path, 41, now_ticks, b"")
    occupancy = Occupancy("n1", proc=tmp_path)
    occupancy.look()
    (tmp_path / "41" / "environ").write_bytes(b"PBS_JOBID=77")
    monotonic = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + LOOK_SECONDS)
    occupancy.look()
    assert occupancy.seen.job_ids == ("77",)


def test_invented_jobs_push_out_none_that_the_kernel_or_the_prolog_vouches_for(tmp_path: Path) -> None:
    proc, jobs = tmp_path / "proc", tmp_path / "job.d"
    proc.mkdir()
    jobs.mkdir()
    for pid in range(100, 100 + MAX_JOBS + 5):
        write_process(proc, pid, pid, b"PBS_JOBID=x%d" % pid)
    write_process(proc, 4, 8000, b"PBS_JOBID=8")
    write_process(proc, 5, 9000, b"", b"0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n")
    (jobs / "8.json").write_text(json.dumps({"job_id": "8"}))
    occupancy = Occupancy("n1", proc=proc, job_directory=jobs)
    occupancy.refresh()
    assert {"7", "8"} <= set(occupancy.seen.job_ids)
    invented = [value for _, value in occupancy.records() if value["source"] == "environment"]
    assert len(invented) == MAX_JOBS
    assert {"7", "8"} <= {value["job_id"] for value in invented}


def test_a_confined_job_that_names_many_restarts_pushes_out_no_other(tmp_path: Path) -> None:
    group = b"0::/system.slice/slurmstepd.scope/job_%d/step_0/user/task_0\n"
    for pid in range(100, 100 + MAX_JOBS + 5):
        write_process(tmp_path, pid, pid, b"SLURM_JOB_ID=7\0SLURM_RESTART_COUNT=%d" % pid, group % 7)
    write_process(tmp_path, 5, 9000, b"", group % 8)
    occupancy = Occupancy("n1", proc=tmp_path)
    occupancy.refresh()
    assert occupancy.seen.job_ids == ("7", "8")
