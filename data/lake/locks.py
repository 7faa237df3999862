"""Readers of a folder and its one cleaner, kept apart by locks that end with their process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crosswind.data.files import PRIVATE_FILE, NoLocksError, lock_file, make_private, take_lock
from crosswind.data.schema.errors import UnavailableError

READING, COMPACTING, LANDING = ".reading.lock", ".compacting.lock", ".landing.lock"


def make_lock(folder: Path) -> None:
    """Makes what readers lock, before there is anything to read. Raises: OSError."""
    make_private(folder)
    (folder / READING).touch(mode=PRIVATE_FILE)


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

    Raises: OSError; UnavailableError where the file system keeps no locks.
    """
    with lock_file(path) as fd:
        try:
            is_ours = take_lock(fd, patience_seconds)
        except NoLocksError as error:
            raise UnavailableError(f"{path}: {error.strerror}") from error
        yield is_ours
