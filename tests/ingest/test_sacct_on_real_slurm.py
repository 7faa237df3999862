"""What is asked of a real Slurm is what is read from its accounting; needs root and Debian's Slurm packages."""

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from crosswind.data.job import Job
from crosswind.data.jobs import jobs_of
from crosswind.ingest.readers.clock import zone_named
from crosswind.ingest.readers.reader import Context, Report
from crosswind.ingest.readers.slurm.sacct import SacctReader, sacct_command

SCRIPT = Path(__file__).parent.parent / "slurm" / "cluster.py"
PATIENCE_SECONDS = 60.0  # slurmctld looks for jobs past their time every 30 s


def read(path: Path, report: Report, zone: str = "UTC") -> list[Job]:
    """The jobs of an export."""
    tables = SacctReader().read(path, report, Context("test", zone_named(zone)))
    return [job for table in tables for job in jobs_of(table)]


class Slurm:
    """A cluster of two pretended nodes, and what is asked of it."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.home = home
        self.environment = environment

    def ask(self, *words: str) -> str:
        """What a Slurm program prints."""
        question = ["timeout", "20", *words]
        answer = subprocess.run(
            question, env=self.environment, cwd=self.home, capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, f"{' '.join(words)}: {answer.stderr}"
        return answer.stdout

    def submit(self, name: str, script: str, *options: str) -> str:
        """The id of a new job."""
        fixed = ("--parsable", "--output=/dev/null", "--account=weather", f"--job-name={name}")
        return self.ask("sbatch", *fixed, *options, f"--wrap={script}").strip()

    def wait_for(self, job_id: str, states: set[str]) -> None:
        """Waits until a job is in one of the states, as the accounting sees it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.states(job_id).isdisjoint(states):
            assert time.monotonic() < deadline, f"job {job_id} is {self.states(job_id)}, not {states}"
            time.sleep(0.3)

    def states(self, job_id: str) -> set[str]:
        """The first words of a job's states; several when it has array elements."""
        lines = self.ask("sacct", "--noheader", "--allocations", "--parsable2", "--format=State", f"--jobs={job_id}")
        return {line.split()[0] for line in lines.splitlines()}

    def export(self) -> str:
        """The accounting of today, by the command that the documentation gives."""
        return self.ask(*sacct_command("now-1hours"))


def script() -> ModuleType:
    """tests/slurm/cluster.py, which stands outside any package."""
    spec = importlib.util.spec_from_file_location("cluster", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    cluster = script()
    if lacking := cluster.missing():
        if os.environ.get("CI") == "true":
            pytest.fail(lacking)
        pytest.skip(lacking)
    home = tmp_path_factory.mktemp("slurm")
    try:
        started = subprocess.run(
            [sys.executable, str(SCRIPT), "up", str(home)], capture_output=True, text=True, check=False
        )
        assert started.returncode == 0, started.stderr
        yield Slurm(home, cluster.environment(home))
    finally:
        subprocess.run([sys.executable, str(SCRIPT), "down", str(home)], check=True)


@pytest.fixture(scope="module")
def asked(slurm: Slurm) -> dict[str, str]:
    """The ids of the jobs by name, once each has come to its end."""
    ids = {"too slow": slurm.submit("too slow", "sleep 300", "--time=1")}
    slurm.wait_for(ids["too slow"], {"RUNNING"})
    ids["never"] = slurm.submit("never", "true", "--nodes=2", "--exclusive")  # waits for the node of the first
    slurm.wait_for(ids["never"], {"PENDING"})
    slurm.ask("scancel", ids["never"])
    slurm.ask("scontrol", "update", f"jobid={ids['too slow']}", "endtime=now")  # limits are whole minutes otherwise
    ids |= {
        "stopped": slurm.submit("stopped", "sleep 300"),
        "ok": slurm.submit("ok", "sleep 2"),
        "three|bars": slurm.submit("three|bars", "exit 3"),
        "killed": slurm.submit("killed", "kill -KILL $$"),
        "two nodes": slurm.submit("two nodes", "srun sleep 1; srun true", "--nodes=2", "--ntasks=2"),
        "tasks": slurm.submit("tasks", "exit $SLURM_ARRAY_TASK_ID", "--array=0-2"),
        "again": slurm.submit("again", "sleep 300", "--requeue"),
    }
    slurm.wait_for(ids["stopped"], {"RUNNING"})
    slurm.ask("scancel", ids["stopped"])
    slurm.wait_for(ids["again"], {"RUNNING"})
    slurm.ask("scontrol", "requeue", ids["again"])
    slurm.wait_for(ids["again"], {"PENDING"})
    for name in ("ok", "three|bars", "killed", "two nodes", "tasks", "too slow"):
        slurm.wait_for(ids[name], {"COMPLETED", "FAILED", "TIMEOUT"})
    slurm.ask("scontrol", "update", f"jobid={ids['again']}", "starttime=now")  # it would wait two minutes
    slurm.wait_for(ids["again"], {"RUNNING"})
    return ids


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return Report(str(tmp_path_factory.mktemp("export") / "sacct.txt"), "sacct")


@pytest.fixture(scope="module")
def jobs(slurm: Slurm, asked: dict[str, str], report: Report) -> dict[str, list[Job]]:
    """The jobs that were read, by name."""
    path = Path(report.path)
    path.write_text(slurm.export())
    named: dict[str, list[Job]] = {}
    for job in read(path, report):
        named.setdefault(job.name, []).append(job)
    return named


def test_every_line_of_a_real_export_is_understood(jobs: dict[str, list[Job]], report: Report) -> None:
    assert (report.skipped, report.quoted) == (0, [])
    assert report.read == sum(map(len, jobs.values())) == 12  # nine submitted, two more array elements, one requeued
    assert "1 jobs appear again (requeued or resized): the later line holds" in report.notes


@pytest.mark.parametrize(
    ("name", "state", "exit_code", "signal"),
    [
        ("ok", "COMPLETED", 0, None),
        ("three|bars", "FAILED", 3, None),
        ("killed", "FAILED", 0, 9),
        ("two nodes", "COMPLETED", 0, None),
        ("stopped", "CANCELLED", 0, None),
        ("never", "CANCELLED", 0, None),
        ("too slow", "TIMEOUT", 0, None),
    ],
)
def test_a_job_ends_as_it_was_told_to(
    jobs: dict[str, list[Job]], asked: dict[str, str], name: str, state: str, exit_code: int, signal: int | None
) -> None:
    [job] = jobs[name]
    assert (job.state, job.exit_code, job.signal) == (state, exit_code, signal)
    assert (job.job_id, job.user, job.account, job.partition) == (asked[name], "root", "weather", "test")


def test_nodes_are_those_that_the_job_ran_on(jobs: dict[str, list[Job]]) -> None:
    [both] = jobs["two nodes"]
    assert (both.nodes, both.node_count, both.cpu_count) == (("node1", "node2"), 2, 2)
    [one] = jobs["ok"]
    assert one.nodes in (("node1",), ("node2",))
    [never] = jobs["never"]
    assert (never.nodes, never.started_ns) == ((), None)


def test_times_are_those_of_the_job(jobs: dict[str, list[Job]]) -> None:
    [job] = jobs["ok"]
    assert job.submitted_ns is not None
    assert job.started_ns is not None
    assert job.ended_ns is not None
    assert abs(job.submitted_ns - time.time_ns()) < 300e9
    assert job.submitted_ns <= job.started_ns < job.ended_ns
    assert job.elapsed_seconds == (job.ended_ns - job.started_ns) * 1e-9
    assert 2 <= job.elapsed_seconds <= 6  # it slept 2 s; starting and ending take some on a busy machine


def test_job_steps_are_folded_into_their_job(jobs: dict[str, list[Job]]) -> None:
    [job] = jobs["two nodes"]
    assert job.fields["steps"] == "3"  # the batch script and two srun
    [slept] = jobs["ok"]
    assert 1_000_000 < int(slept.fields["max_rss_bytes"]) < 100_000_000  # a shell that sleeps


def test_array_elements_are_jobs_of_their_own(jobs: dict[str, list[Job]], asked: dict[str, str]) -> None:
    assert {job.fields["JobID"]: job.exit_code for job in jobs["tasks"]} == {
        f"{asked['tasks']}_{n}": n for n in range(3)
    }
    assert len({job.job_id for job in jobs["tasks"]}) == 3


def test_a_requeued_job_comes_twice_and_last_as_it_is_now(jobs: dict[str, list[Job]]) -> None:
    first, second = jobs["again"]
    assert first.job_id == second.job_id
    assert (first.state, second.state) == ("REQUEUED", "RUNNING")
    assert (second.ended_ns, second.exit_code) == (None, None)


def test_an_unmeasured_energy_is_unknown_and_not_zero(jobs: dict[str, list[Job]]) -> None:
    assert [job.energy_joules for group in jobs.values() for job in group] == [None] * 12


def test_local_times_are_read_in_the_zone_that_they_were_written_in(
    slurm: Slurm, jobs: dict[str, list[Job]], tmp_path: Path
) -> None:
    path = tmp_path / "local.txt"
    words = ["env", "-u", "SLURM_TIME_FORMAT", "TZ=Asia/Kathmandu", *sacct_command("now-1hours")[2:]]
    path.write_text(slurm.ask(*words))
    report = Report(str(path), "sacct")
    [local] = [job for job in read(path, report, "Asia/Kathmandu") if job.name == "ok"]
    [job] = jobs["ok"]
    assert (local.submitted_ns, local.started_ns, local.ended_ns) == (job.submitted_ns, job.started_ns, job.ended_ns)
