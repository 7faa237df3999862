"""Placement of the lab's own processes on cores."""

import os
from collections.abc import Sequence

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts.names import PROC


def all_but(core: int | None) -> list[int]:
    """Return the cores other than a rank's own; all of them if there is no other."""
    cores = sorted(os.sched_getaffinity(0))
    return [other for other in cores if other != core] or cores


def core_of(pid: int) -> int:
    """Return the core that a process ran on last. Raises: UnavailableError. Source: proc_pid_stat(5)."""
    try:
        return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[36])
    except OSError as error:
        raise UnavailableError(f"process {pid}: {error.strerror}") from error


def stay_on(cores: Sequence[int]) -> None:
    """Keep this process on these cores."""
    os.sched_setaffinity(0, cores)
