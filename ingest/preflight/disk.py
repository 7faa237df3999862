"""Disk: bandwidth of writing and reading a small file."""

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.checks import Measured
from crosswind.ingest.preflight.measure import Bench

FILE_BYTES, BLOCK_BYTES = 64 * 1024 * 1024, 1024 * 1024


@dataclass(frozen=True)
class Disk:
    """Writes a file with fsync, drops its pages, and reads it again; stops when the time is over.

    A file system that ignores fsync or keeps the pages shows its memory rather than a disk.
    """

    name: ClassVar[str] = "disk"
    weight: ClassVar[float] = 2.0
    file_bytes: int = FILE_BYTES

    def measure(self, bench: Bench) -> Iterator[Measured]:
        """Yield bytes/s written and read. Raises: OSError naming the folder."""
        mount, method = mount_point(bench.folder), f"{self.file_bytes >> 20} MiB in blocks of 1 MiB"
        with tempfile.TemporaryFile(dir=bench.folder, prefix=".crosswind-check-", buffering=0) as file:
            values = {
                "disk_write": _written(file.fileno(), self.file_bytes, bench.seconds / 2),
                "disk_read": _read(file.fileno(), bench.seconds / 2),
            }
        for measure, value in values.items():
            yield Measured(bench.node, measure, value, mount, method=method)


def mount_point(folder: Path) -> str:
    """Return the mount point of this folder's file system."""
    path = folder.resolve()
    return str(next(mount for mount in (path, *path.parents) if os.path.ismount(mount) or mount == mount.parent))


def _written(fd: int, size: int, seconds: float) -> float:
    block, done = os.urandom(BLOCK_BYTES), 0  # random, for file systems that compress
    began = time.perf_counter()
    while done < size and (not done or time.perf_counter() - began < seconds):
        done += os.write(fd, block)
    os.fsync(fd)
    return done / (time.perf_counter() - began)


def _read(fd: int, seconds: float) -> float:
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.lseek(fd, 0, os.SEEK_SET)
    done, began = 0, time.perf_counter()
    while not done or time.perf_counter() - began < seconds:
        got = os.read(fd, BLOCK_BYTES)
        done += len(got)
        if not got:
            break
    return done / (time.perf_counter() - began)
