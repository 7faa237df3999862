"""The control groups of processes and their folders: in one tree of version 2, or many of version 1."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.kernel.kernel_files import KernelFiles

UNIFIED: Final = ""  # the name of version 2's tree, as in /proc/<pid>/cgroup
CONTROLLERS: Final = ("cpu", "cpuacct", "memory", "blkio", "pids", "rdma")  # of version 1 that have files for us
# slurmd puts its node name before or behind its own where several run on a node.
SLURM_SCOPE: Final = re.compile(r"(.+_)?slurmstepd\.scope")
SLURM_ROOT: Final = re.compile(r"slurm(_.+)?")
PBS_JOBS: Final = "jobid"


@dataclass(frozen=True)
class Trees:
    """The mount points of each controller of version 1, and of version 2 under the name UNIFIED."""

    folders: Mapping[str, str]

    @classmethod
    def mounted(cls, root: Path, files: KernelFiles) -> "Trees":
        """Return the trees mounted for this process. Raises: UnavailableError when there are none, MalformedError."""
        path = str(root / "proc/self/mounts")
        folders: dict[str, str] = {}
        for line in files.read(path).decode("utf-8", "backslashreplace").splitlines():
            _, place, kind, options = (*line.split(" "), "", "", "")[:4]
            if kind == "cgroup2":
                folders.setdefault(UNIFIED, str(root / place.lstrip("/")))
            elif kind == "cgroup":
                for name in set(CONTROLLERS).intersection(options.split(",")):
                    folders.setdefault(name, str(root / place.lstrip("/")))
        if not folders:
            raise UnavailableError(f"{path}: expected a mounted cgroup file system, found none")
        return cls(folders)


def groups_of(pids: Iterable[int], proc: Path, files: KernelFiles) -> dict[str, set[str]]:
    """Return the controllers by path of the processes' groups, and of the job and step around them.

    The root is left out: it is the whole node. Groups outside of the agent's namespace cannot be read.
    """
    groups: dict[str, set[str]] = {}
    for pid in pids:
        path = f"{proc}/{pid}/cgroup"
        try:
            lines = files.read(path).decode("utf-8", "backslashreplace").splitlines()
        except (UnavailableError, MalformedError):  # it has ended
            continue
        for line in lines:
            _, _, rest = line.partition(":")
            controllers, _, place = rest.partition(":")
            names = set(controllers.split(",")).intersection((UNIFIED, *CONTROLLERS))
            if names and is_readable_place(place):
                for group in {place, *jobs_and_steps(place)}:
                    groups.setdefault(group, set()).update(names)
    return groups


def is_readable_place(place: str) -> bool:
    """Return whether this is the path of a group other than the root, below the agent's own root."""
    parts = place.split("/")
    return len(place) > 1 and parts[0] == "" and not {"", ".", ".."}.intersection(parts[1:])


def jobs_and_steps(place: str) -> list[str]:
    """Return the paths of the batch system's job and step among a group's ancestors, the group itself included.

    Version 2 of Slurm's: system.slice/[<node>_]slurmstepd.scope/<job>/step_<s>/user/task_<t>, where the job is
    job_<id>, or since Slurm 26.05 an id that does not show the number. Version 1: slurm[_<node>]/uid_<u>/job_<id>/...
    PBS: .../jobid/<id>.
    Source: https://slurm.schedmd.com/cgroup_v2.html
    """
    parts = place.split("/")
    for start, part in enumerate(parts):
        if SLURM_SCOPE.fullmatch(part) and parts[start + 1 : start + 2] != ["system"]:
            jobs = [start + 1]
        elif SLURM_ROOT.fullmatch(part):
            jobs = [index for index in range(start + 1, len(parts)) if parts[index].startswith("job_")]
        elif part == PBS_JOBS:
            jobs = [start + 1]
        else:
            continue
        steps = [index for index in range(start + 1, len(parts)) if parts[index].startswith("step_")]
        return ["/".join(parts[: index + 1]) for index in (*jobs[:1], *steps[:1]) if index < len(parts)]
    return []
