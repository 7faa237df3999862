"""Control groups that limit processes to a share of the processor time, in version 1 and 2.

Sources: Linux, scheduler/sched-bwc and admin-guide/cgroup-v2.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts.names import PREFIX, PROC

PERIOD_US = 100_000
EMPTY_SECONDS = 2.0
MEMBERS = "cgroup.procs"


@dataclass(frozen=True)
class Quota:
    """A group with a quota, and the groups of its processes before."""

    folder: Path
    before: Path

    def lift(self) -> None:
        """Put the processes back and remove the group. Raises: UnavailableError."""
        deadline = time.monotonic() + EMPTY_SECONDS
        while self.folder.exists():
            _move(_members(self.folder), self.before)
            with suppress(OSError):  # a process in it is still dying, or has just been started
                self.folder.rmdir()
                return
            if time.monotonic() > deadline:
                raise UnavailableError(f"{self.folder}: holds {_members(self.folder)}, expected an empty group")
            time.sleep(0.005)


@dataclass(frozen=True)
class CpuGroups:
    """The hierarchy that has the cpu controller."""

    root: Path
    version: int
    proc: Path = PROC
    top: str = "/"  # the visible part of the hierarchy; a container may not see all

    @classmethod
    def mounted(cls, proc: Path = PROC) -> Self:
        """Return that of this machine. Raises: UnavailableError. Source: proc_pid_mountinfo(5)."""
        for line in (proc / "self" / "mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            fields, (kind, _source, options) = before.split(), after.split()
            top, root = fields[3], Path(fields[4])
            if kind == "cgroup" and "cpu" in options.split(","):
                return cls(root, 1, proc, top)
            if kind == "cgroup2" and "cpu" in _words(root / "cgroup.controllers"):
                return cls(root, 2, proc, top)
        raise UnavailableError(f"{proc}/self/mountinfo: no mounted control groups with the cpu controller")

    def limit(self, lab: str, pids: Sequence[int], percent: float) -> Quota:
        """Limit processes to a percentage of one core. Raises: UnavailableError."""
        before = self._group_of(pids[0])
        quota_us = round(PERIOD_US * percent / 100)
        # Version 2 allows no processes in a group between the root and one with controllers.
        parent = before if self.version == 1 else self.root
        quota = Quota(parent / f"{lab}-quota-{pids[0]}", before)
        try:
            quota.folder.mkdir()
        except OSError as error:
            raise UnavailableError(f"{quota.folder}: {error.strerror}, expected to make this group") from error
        try:
            self._write_quota(quota.folder, quota_us)
            _move(pids, quota.folder)
        except OSError as error:
            quota.lift()
            raise UnavailableError(f"{quota.folder}: {error.strerror}, expected {pids} to join it") from error
        return quota

    def _write_quota(self, folder: Path, quota_us: int) -> None:
        if self.version == 1:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota_us))
            return
        if "cpu" not in _words(self.root / "cgroup.subtree_control"):
            (self.root / "cgroup.subtree_control").write_text("+cpu")
        (folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")

    def _group_of(self, pid: int) -> Path:
        """Return the group of a process. Source: cgroups(7), /proc/pid/cgroup."""
        try:
            lines = (self.proc / str(pid) / "cgroup").read_text().splitlines()
        except OSError as error:
            raise UnavailableError(f"process {pid}: {error.strerror}") from error
        for line in lines:
            _, controllers, path = line.split(":", 2)
            if (self.version == 2 and not controllers) or (self.version == 1 and "cpu" in controllers.split(",")):
                return self.root / path.removeprefix(self.top).lstrip("/")
        raise UnavailableError(f"{self.proc}/{pid}/cgroup: no line of the cpu controller")


def remove(is_chosen: Callable[[str], bool]) -> list[str]:
    """Remove the lab's groups with such names, their processes into the group above. Return the names."""
    try:
        root = CpuGroups.mounted().root
    except UnavailableError:
        return []
    # Unlike a glob, a walk skips groups that others remove meanwhile.
    folders = (Path(parent, name) for parent, names, _ in os.walk(root) for name in names)
    chosen = [folder for folder in folders if folder.name.startswith(PREFIX) and is_chosen(folder.name)]
    for folder in chosen:
        Quota(folder, folder.parent).lift()
    return [folder.name for folder in chosen]


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _members(folder: Path) -> list[int]:
    return [int(pid) for pid in _words(folder / MEMBERS)]


def _move(pids: Iterable[int], folder: Path) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # it has ended
            (folder / MEMBERS).write_text(str(pid))
