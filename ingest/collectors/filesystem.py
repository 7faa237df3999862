"""File systems: space left on those that training reads or writes, and whether they answer."""

import os
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample, Scalar
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles

LOCAL = {"bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "ntfs3", "vfat", "xfs", "zfs"}
SHARED = {"afs", "beegfs", "ceph", "cifs", "gfs2", "gpfs", "lustre", "nfs", "nfs4", "ocfs2", "pvfs2", "smb3", "wekafs"}
IN_MEMORY = {"/dev/shm", "/tmp"}  # noqa: S108 - of the many tmpfs, those that programs fill
MAX_MOUNTS = 64
ANSWER_SECONDS = 2.0
FILESYSTEM = MetricSet(
    "filesystem",
    "space of each mounted file system; the device is where it is mounted",
    (
        Column("size_bytes", "of the whole file system", dtype="uint64", unit="bytes"),
        Column("free_bytes", "in no use, those kept for root included", dtype="uint64", unit="bytes"),
        Column("available_bytes", "what a program without privileges can still get", dtype="uint64", unit="bytes"),
        Column("files", "files that there is room for; missing where no number is set", dtype="uint64"),
        Column("free_files", "of them not yet made", dtype="uint64"),
        Column("is_read_only", "nobody can write to it", Kind.FACT, "bool"),
        Column("is_answering", f"it answered within {ANSWER_SECONDS} s", Kind.FACT, "bool"),
        Column("filesystem_type", "such as ext4, nfs4 or lustre", Kind.FACT, "string"),
        Column("mounted_from", "disk, or server and path", Kind.FACT, "string"),
    ),
)
Statvfs = Callable[[str], os.statvfs_result]


@dataclass(frozen=True)
class _Mount:
    path: str
    kind: str
    mounted_from: str

    @property
    def facts(self) -> dict[str, Scalar]:
        return {"filesystem_type": self.kind[:200], "mounted_from": _printable(self.mounted_from)}


@dataclass(frozen=True)
class _Query:
    """One `statvfs` on a thread of its own: on a dead server it never returns, and cannot be interrupted."""

    path: str
    statvfs: Statvfs
    answers: queue.SimpleQueue[os.statvfs_result | OSError] = field(default_factory=queue.SimpleQueue)

    def ask(self) -> None:
        threading.Thread(target=self._answer, name=f"statvfs {self.path}", daemon=True).start()

    def _answer(self) -> None:
        try:
            self.answers.put(self.statvfs(self.path))
        except OSError as error:
            self.answers.put(error)


@dataclass(frozen=True)
class FilesystemCollector:
    """Blocks and files of disk, network and chosen memory file systems, or of `paths` where these are given.

    A file system that does not answer has a row that says so, and is not queried again before it has answered.
    Source: statvfs(3), proc_pid_mounts(5)
    """

    root: Path = Path("/")
    paths: tuple[str, ...] = ()
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    statvfs: Statvfs = field(default=os.statvfs, repr=False, compare=False)
    answer_seconds: float = ANSWER_SECONDS
    metric_set: ClassVar[MetricSet] = FILESYSTEM
    _asked: dict[str, _Query] = field(default_factory=dict, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether the kernel shows what is mounted."""
        return self.files.is_readable(str(self.root / "proc/self/mounts"))

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every file system. Raises: UnavailableError when none is mounted, MalformedError."""
        mounts = self._mounts()
        for gone in self._asked.keys() - {mount.path for mount in mounts}:
            del self._asked[gone]
        fresh = [self._ask(mount.path) for mount in mounts if mount.path not in self._asked]
        for question in fresh:
            question.ask()
        until = time.monotonic() + self.answer_seconds
        for mount in mounts:
            values = self._answer(mount.path, until)
            if values is not None:
                yield Sample(_printable(mount.path), mount.facts | values)

    def _ask(self, path: str) -> _Query:
        question = self._asked[path] = _Query(str(self.root / path.lstrip("/")), self.statvfs)
        return question

    def _answer(self, path: str, until: float) -> dict[str, Scalar] | None:
        """Return the file system's numbers; None when it has been unmounted meanwhile, or is hidden from this user."""
        try:
            answer = self._asked[path].answers.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return {"is_answering": False}
        del self._asked[path]
        return None if isinstance(answer, OSError) else _values(answer)

    def _mounts(self) -> list[_Mount]:
        path = str(self.root / "proc/self/mounts")
        lines = [line.split(" ") for line in os.fsdecode(self.files.read(path)).splitlines()]
        mounts: dict[tuple[str, str], _Mount] = {}
        for mounted_from, place, kind, *_ in (line for line in lines if len(line) == 6):
            mount = _Mount(_unescaped(place), kind, _unescaped(mounted_from))
            if self._is_wanted(mount):  # of bind mounts of the same one, the first
                mounts.setdefault((kind, mount.path if kind == "tmpfs" else mount.mounted_from), mount)
        if not mounts:
            raise UnavailableError(f"{path}: expected a disk, network or memory file system, found none")
        return list({mount.path: mount for mount in mounts.values()}.values())[:MAX_MOUNTS]

    def _is_wanted(self, mount: _Mount) -> bool:
        if self.paths:
            return mount.path in self.paths
        return mount.kind in LOCAL or mount.kind in SHARED or (mount.kind == "tmpfs" and mount.path in IN_MEMORY)


def _values(answer: os.statvfs_result) -> dict[str, Scalar]:
    size = answer.f_frsize
    values: dict[str, Scalar] = {
        "size_bytes": answer.f_blocks * size,
        "free_bytes": answer.f_bfree * size,
        "available_bytes": answer.f_bavail * size,
        "is_read_only": bool(answer.f_flag & os.ST_RDONLY),
        "is_answering": True,
    }
    return values | ({"files": answer.f_files, "free_files": answer.f_ffree} if answer.f_files else {})


def _unescaped(text: str) -> str:
    """Decode a path in which the kernel writes blanks, tabs, newlines and backslashes as octal numbers."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda octal: chr(int(octal[1], 8)), text)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]


SOURCE = Source(
    "filesystem",
    lambda host, options: FilesystemCollector(host.root, options.texts("paths"), host.files),
    advice="mount /proc; sources.filesystem.paths names the mount points to watch",
    interval_seconds=30.0,
    timeout_seconds=5.0,
    options=("paths",),
)
