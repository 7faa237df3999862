"""The asker for a trial: the job, whose restart gets the same trial back, and the process, which alone holds it."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from crosswind.data.files import lock_file, take_lock
from crosswind.ingest.probe.place import job_id, node_name
from crosswind.models.tuner.service.service import Lease

SLOTS_MAX = 1000  # processes of one job on one node that ask beside each other
NAME_MAX = 200


def job_key(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return what stays the same when a job is requeued: its id, or its array's with the task; None outside of jobs.

    Source: sbatch(1), SLURM_ARRAY_JOB_ID and SLURM_ARRAY_TASK_ID.
    """
    array, task = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
    if array and task:
        return f"{array}_{task}"
    return job_id(environment)


def restarts(environment: Mapping[str, str] = os.environ) -> int:
    """Return how often the job was requeued; Slurm does not set it in the first run."""
    text = environment.get("SLURM_RESTART_COUNT", "")
    return int(text) if text.isascii() and text.isdigit() else 0


@contextmanager
def asking_process(lease_seconds: float, environment: Mapping[str, str] = os.environ) -> Iterator[Lease]:
    """This process as a holder of trials, distinguished from others of its job that ask at the same time on this node.

    The first gets slot 0, the next slot 1; a restarted job takes the same slots, and so gets the trials of before.
    """
    job = job_key(environment)
    with _slot(job, environment) as slot:
        yield Lease(owner_name(environment), lease_seconds, _job_with_slot(job, slot, environment))


def holder(lease_seconds: float, slot: str, environment: Mapping[str, str] = os.environ) -> Lease:
    """Whoever runs one command of a job script; `slot` tells apart those who ask beside each other in one job."""
    job = job_key(environment)
    named = f"{job}/{slot}" if job and slot else job
    return Lease(_script_name(environment), lease_seconds, named[:NAME_MAX] if named else None)


def owner_name(environment: Mapping[str, str] = os.environ) -> str:
    """The process: no other one has this name, on whatever node."""
    job = job_key(environment)
    place = f"{node_name(environment)} {os.getpid()}"
    return (f"job {job} restart {restarts(environment)} {place}" if job else place)[:NAME_MAX]


def _script_name(environment: Mapping[str, str]) -> str:
    job = job_key(environment)
    return (f"job {job}" if job else f"{node_name(environment)} {os.getppid()}")[:NAME_MAX]


def _job_with_slot(job: str | None, slot: int, environment: Mapping[str, str]) -> str | None:
    if job is None:
        return None
    step = environment.get("SLURM_STEP_ID", "")
    return f"{job}/{step}.{slot}" if step.isdigit() else f"{job}/{slot}"


@contextmanager
def _slot(job: str | None, environment: Mapping[str, str]) -> Iterator[int]:
    """The first free number of this job on this node, held as long as the process lives."""
    if job is None:
        yield 0
        return
    folder = Path(tempfile.gettempdir()) / f"crosswind-tune-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    name = re.sub(r"[^\w.-]", "_", f"{node_name(environment)}-{job}-{environment.get('SLURM_STEP_ID', '')}")[:NAME_MAX]
    for number in range(SLOTS_MAX):
        with lock_file(folder / f"{name}-{number}", 0o600) as fd:
            if _is_free(fd):
                yield number
                return
    yield SLOTS_MAX


def _is_free(fd: int) -> bool:
    try:
        return take_lock(fd)
    except OSError:  # where there are no locks, none is
        return False
