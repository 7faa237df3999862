"""Batch jobs that have ended for good, as Slurm's own commands say."""

import re
import subprocess
from collections.abc import Callable, Collection, Sequence

JOB = re.compile(r"[0-9]+(_[0-9]+)?")  # a job, or one task of an array
SECONDS = 10.0
ENDED = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
)  # Source: squeue(1), job state codes. A preempted job may be on its way back into the queue.


def output_of(command: Sequence[str]) -> str:
    """Return what a command prints; nothing where there is no such command, or it fails or hangs."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return run.stdout if run.returncode == 0 else ""


def ended_jobs(jobs: Collection[str], run: Callable[[Sequence[str]], str] = output_of) -> frozenset[str]:
    """Return the jobs that ended and cannot come back; in doubt, none.

    A job is named `123` or `123_4`; anything after a slash is ignored. The controller forgets ended jobs within minutes
    (MinJobAge in slurm.conf(5)); the accounting, where there is one, still has them.
    """
    ids = {job: job.partition("/")[0] for job in jobs}
    wanted = sorted({job_id for job_id in ids.values() if JOB.fullmatch(job_id)})
    if not wanted:
        return frozenset()
    states = _states(run(["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T"]), wanted)
    forgotten = [job_id for job_id in wanted if job_id not in states]
    if forgotten:
        command = ["sacct", "--allocations", "--noheader", "--parsable2", "--format=JobID,State"]
        states |= _states(run([*command, f"--jobs={','.join(forgotten)}"]), forgotten)
    return frozenset(job for job, job_id in ids.items() if states.get(job_id) in ENDED)


def _states(text: str, wanted: Collection[str]) -> dict[str, str]:
    """Return the state of each job by its id; of `CANCELLED by 1000` the first word."""
    rows = (line.strip().split("|") for line in text.splitlines())
    return {row[0]: row[1].split()[0] for row in rows if len(row) == 2 and row[0] in wanted and row[1].strip()}
