"""A real Slurm that tests talk to, and jobs of every kind that have come to where they should be in it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.needs import ROOT, lack
from tests.slurm import cluster

NODES = 4  # of the cluster that runs the jobs below
PATIENCE_SECONDS = 60.0  # slurmctld looks for jobs past their time every 30 s
STATES = {"too slow": "TIMEOUT", "stopped": "CANCELLED", "never": "CANCELLED", "ok": "COMPLETED", "again": "RUNNING"}
STATES |= {"three|bars": "FAILED", "killed": "FAILED", "two nodes": "COMPLETED"}


@dataclass
class Slurm:
    """A cluster of pretended nodes, and the ids of the jobs that it was given, by their names."""

    home: Path
    environment: dict[str, str]
    ids: dict[str, str] = field(default_factory=dict)

    def ask(self, *words: str) -> str:
        """Return what a Slurm program prints."""
        question = ["timeout", "20", *words]
        answer = subprocess.run(question, env=self.environment, cwd=self.home, capture_output=True, check=False)
        assert answer.returncode == 0, f"{' '.join(words)}: {answer.stderr.decode()}"
        return answer.stdout.decode()

    def submit(self, name: str, script: str, *options: str) -> str:
        """The id of a new job."""
        fixed = ("--parsable", "--output=/dev/null", "--account=weather", f"--job-name={name}")
        self.ids[name] = self.ask("sbatch", *fixed, *options, f"--wrap={script}").strip()
        return self.ids[name]

    def wait_for(self, expected: Mapping[str, str]) -> None:
        """Waits until jobs are in these states, as the accounting sees them."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (seen := self.states()) | dict(expected) != seen:
            assert time.monotonic() < deadline, f"{expected} expected, seen {seen}"
            time.sleep(0.3)

    def wait_for_job(self, job_id: str, state: str) -> None:
        """Waits until a job, or all elements of an array, are in a state; also one that was put back and waits."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while set((seen := self.states(f"--jobs={job_id}")).values()) != {state}:
            assert time.monotonic() < deadline, f"{state} expected, seen {seen}"
            time.sleep(0.3)

    def states(self, asked: str = "--starttime=now-1hours") -> dict[str, str]:
        """States by the ids that Slurm shows, or by names."""
        columns = "--format=JobID,State,JobName"
        lines = self.ask("sacct", "--noheader", "--allocations", "--parsable2", columns, asked)
        rows = [line.split("|", 2) for line in lines.splitlines()]
        return {key: state.split()[0] for shown, state, name in rows for key in (shown, name)}


@contextmanager
def running(home: Path, nodes: int) -> Iterator[Slurm]:
    """A cluster, ended with the block; the test is skipped where Slurm is not installed, and fails so in CI."""
    if lacking := cluster.missing():
        lack(cluster.PACKAGES if os.geteuid() == 0 else ROOT, lacking)
    script = [sys.executable, str(Path(cluster.__file__))]
    try:
        command = [*script, "up", str(home), "--nodes", str(nodes)]
        started = subprocess.run(command, capture_output=True, text=True, check=False)
        assert started.returncode == 0, started.stderr
        yield Slurm(home, cluster.environment(home))
    finally:
        subprocess.run([*script, "down", str(home)], check=True)


def run_jobs(slurm: Slurm) -> None:
    """Submits one job of each kind, and waits until each is where it should be."""
    slurm.submit("too slow", "sleep 300", "--time=1")
    slurm.submit("stopped", "sleep 300")
    slurm.submit("again", "sleep 300", "--requeue")
    slurm.wait_for({"too slow": "RUNNING", "stopped": "RUNNING", "again": "RUNNING"})
    slurm.submit("never", "true", f"--nodes={NODES}", "--exclusive")
    slurm.wait_for({"never": "PENDING"})  # a job cancelled before slurmdbd knows it gets that moment as its start
    slurm.ask("scontrol", "update", f"jobid={slurm.ids['too slow']}", "endtime=now+5")  # limits are whole minutes
    slurm.ask("scontrol", "requeue", slurm.ids["again"])
    slurm.ask("scancel", slurm.ids["stopped"], slurm.ids["never"])
    slurm.submit("ok", "sleep 2")
    slurm.submit("three|bars", "exit 3")
    slurm.submit("killed", "kill -KILL $$")
    slurm.submit("two nodes", "srun sleep 1; srun true", "--nodes=2", "--ntasks=2")
    slurm.submit("tasks", "exit $SLURM_ARRAY_TASK_ID", "--array=0-2")
    fixed = ("--parsable", "--output=/dev/null", "--account=weather", "--job-name=hetero", "--ntasks=1")
    wrapped = "--wrap=srun --het-group=0,1 sleep 1"
    slurm.ids["hetero"] = slurm.ask("sbatch", *fixed, ":", "--nodes=1", "--ntasks=2", wrapped).strip()
    slurm.submit("held", "true", "--hold", "--array=5-9%2")
    slurm.wait_for_job(slurm.ids["again"], "PENDING")  # started before its first end is over, it would fail
    slurm.ask("scontrol", "update", f"jobid={slurm.ids['again']}", "starttime=now")  # it would wait two minutes
    array, leader = slurm.ids["tasks"], slurm.ids["hetero"]
    slurm.wait_for(
        STATES
        | {f"{array}_0": "COMPLETED", f"{array}_1": "FAILED", f"{array}_2": "FAILED"}
        | {f"{leader}+0": "COMPLETED", f"{leader}+1": "COMPLETED"}
    )
