"""The processes of this node, with the identity in their environments, read once in a process's life."""

import os
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.kernel.fd_limits import is_exhausted
from crosswind.ingest.kernel.procfs import count, read_file, stat_fields
from crosswind.ingest.occupancy.confinement import MAX_BYTES, confinement_of
from crosswind.ingest.occupancy.environment import MAX_ENVIRONMENT_BYTES, NOBODY, Identity, identity_of

PARENT, FLAGS, USER_TICKS, SYSTEM_TICKS, START = 1, 6, 11, 12, 19  # among the fields of stat, from the state on
KERNEL_THREAD = 0x00200000  # PF_KTHREAD
TICKS = os.sysconf("SC_CLK_TCK")
YOUNG_TICKS = TICKS  # so long a process may still show its state before its exec


@dataclass(slots=True)
class Process:
    """One process; `identity` is None when nothing is known of it, `inherited` is its parent's."""

    pid: int
    inode: int
    start_ticks: int
    parent: int
    uid: int = -1
    is_hidden: bool = False  # this user may not read its environment
    is_confined: bool = False  # to a job, by the kernel
    identity: Identity | None = None
    inherited: Identity | None = field(default=None, repr=False)

    @property
    def is_head(self) -> bool:
        """Return whether it carries a rank that its parent does not."""
        identity = self.identity
        return identity is not None and identity.is_of_a_rank and not identity.continues(self.inherited)


class Processes:
    """All processes of a proc tree; a refresh reads the new ones alone."""

    def __init__(self, proc: str) -> None:
        self.living: dict[int, Process] = {}
        self.hidden = 0
        self._proc = proc
        self._young: set[int] = set()

    def refresh(self, again: Collection[int] = ()) -> bool:
        """Find processes that came and went, read those in `again` once more. Return whether anything changed.

        Raises: UnavailableError when there is no such tree, or no file descriptor left.
        """
        inodes = self._listed()
        changed = [pid for pid, inode in inodes.items() if (had := self.living.get(pid)) is None or had.inode != inode]
        gone = self.living.keys() - inodes.keys()
        looked = {*changed, *self._young, *again} & inodes.keys()
        if not looked and not gone:
            return False
        for pid in gone:
            del self.living[pid]
        self._look(looked, inodes)
        self.hidden = sum(process.is_hidden for process in self.living.values())
        return True

    @property
    def has_young(self) -> bool:
        """Return whether some processes may still be about to exec."""
        return bool(self._young)

    def used_ticks(self, pid: int) -> int:
        """Return the processor time of a process so far; 0 when it is gone."""
        try:
            fields = self._stat(pid)
            return count(fields[USER_TICKS], "stat") + count(fields[SYSTEM_TICKS], "stat")
        except (UnavailableError, MalformedError):
            return 0

    def _listed(self) -> dict[int, int]:
        """Return inodes by pid: every process has a new one, so that a reused pid is noticed without a read."""
        try:
            with os.scandir(self._proc) as entries:
                return {int(entry.name): entry.inode() for entry in entries if entry.name.isdecimal()}
        except (OSError, ValueError) as error:
            raise UnavailableError(f"{self._proc}: expected the kernel's process files: {error}") from error

    def _look(self, pids: Collection[int], inodes: dict[int, int]) -> None:
        self._young &= inodes.keys()
        processes = filter(None, (self._process(pid, inodes[pid]) for pid in pids))
        now_ticks = time.clock_gettime_ns(time.CLOCK_BOOTTIME) * TICKS // 1_000_000_000
        for process in sorted(processes, key=lambda new: (new.start_ticks, new.pid)):  # parents come first
            earlier = self.living.get(process.pid)
            parent = self.living.get(process.parent)
            if parent is not None:
                process.inherited = parent.identity
            elif earlier is not None and earlier.start_ticks == process.start_ticks:
                process.inherited = earlier.inherited  # the parent has ended meanwhile
            self.living[process.pid] = process
            is_young = process.start_ticks + YOUNG_TICKS > now_ticks
            (self._young.add if is_young else self._young.discard)(process.pid)

    def _process(self, pid: int, inode: int) -> Process | None:
        try:
            fields = self._stat(pid)
            process = Process(pid, inode, count(fields[START], "stat"), count(fields[PARENT], "stat"))
            if count(fields[FLAGS], "stat") & KERNEL_THREAD:
                return process
        except (UnavailableError, MalformedError) as error:
            if is_exhausted(error):
                raise
            self.living.pop(pid, None)
            return None
        self._read_environment(process)
        self._read_confinement(process)
        return process

    def _read_environment(self, process: Process) -> None:
        try:
            process.uid = os.stat(f"{self._proc}/{process.pid}").st_uid  # noqa: PTH116 - a path object costs as much
            content = _head(f"{self._proc}/{process.pid}/environ", MAX_ENVIRONMENT_BYTES)
        except OSError as error:
            _pass_on_exhaustion(error)
            process.is_hidden = True
            return
        whole = content if len(content) < MAX_ENVIRONMENT_BYTES else content.rpartition(b"\0")[0]
        process.identity = identity_of(whole)

    def _read_confinement(self, process: Process) -> None:
        try:
            confinement = confinement_of(_head(f"{self._proc}/{process.pid}/cgroup", MAX_BYTES))
        except OSError as error:  # it has just ended, or this kernel has no control groups
            _pass_on_exhaustion(error)
            return
        if confinement is not None:
            process.is_confined = True
            process.identity = (process.identity or NOBODY).confined_to(confinement)

    def _stat(self, pid: int) -> list[bytes]:
        path = f"{self._proc}/{pid}/stat"
        return stat_fields(read_file(path), path)


def _pass_on_exhaustion(error: OSError) -> None:
    if is_exhausted(error):
        raise UnavailableError(f"{error.filename}: {error.strerror}") from error


def _head(path: str, limit: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, limit)
    finally:
        os.close(fd)
