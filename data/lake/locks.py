"""Readers of a folder and its one cleaner, kept apart by locks that end with their process."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crosswind.data.schema.errors import UnavailableError

READING, COMPACTING = ".reading.lock", ".compacting.lock"
PAUSE_SECONDS = 0.02


def make_lock(folder: Path) -> None:
    """Makes what readers lock, before there is anything to read. Raises: OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / READING).touch(mode=0o644)


def begin_reading(folder: Path) -> int | None:
    """A descriptor that, while it is open, keeps files from being removed; None where nobody ever compacted."""
    try:
        fd = os.open(folder / READING, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    with suppress(OSError):  # without locks nothing is compacted
        fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Within, no file is removed by compaction."""
    fd = begin_reading(folder)
    try:
        yield
    finally:
        if fd is not None:
            os.close(fd)


@contextmanager
def alone(path: Path, patience_seconds: float = 0.0) -> Iterator[bool]:
    """Yield whether this process alone holds the lock, within; waits so long for others to let go of it.

    Raises: UnavailableError where the file system keeps no locks.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        yield _is_ours(fd, path, time.monotonic() + patience_seconds)
    finally:
        os.close(fd)


def _is_ours(fd: int, path: Path, until: float) -> bool:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE_SECONDS)
        except OSError as error:
            if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL):
                raise UnavailableError(f"{path}: its file system keeps no locks, which compaction needs") from error
            raise
        else:
            return True
