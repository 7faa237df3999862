"""Files that appear whole or not at all, and locks that end with their process; with the standard library alone."""

import errno
import fcntl
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # NFS without lockd, Lustre without flock
PAUSE_SECONDS = 0.02
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600  # of the store and the spool: others ask the server


class NoLocksError(OSError):
    """A file system that keeps no locks."""


@contextmanager
def published(path: Path, *, is_durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file that takes the name `path` at the end of the block; an error leaves what was there.

    Its owner alone may read it. A durable one survives a power failure from then on. Raises: OSError.
    """
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with open(draft, "xb", opener=private) as file:
            yield file
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        draft.rename(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    if is_durable:
        sync(path.parent)


def private(path: str, flags: int) -> int:
    """Open a file, as `opener` of `open`: a new one is its owner's alone, whatever the umask. Raises: OSError."""
    return os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)


def make_private(folder: Path) -> None:
    """Make a folder, and those above it, that their owner alone may open, whatever the umask; what is there stays.

    Raises: OSError.
    """
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


def sync(path: Path) -> None:
    """Returns when the file, or a folder's list of files, is on the disk. Raises: OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def lock_file(path: Path, mode: int = PRIVATE_FILE) -> Iterator[int]:
    """Yield a descriptor to lock the file by; the lock ends with the block. Raises: OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)
    try:
        yield fd
    finally:
        os.close(fd)


def take_lock(fd: int, patience_seconds: float = 0.0) -> bool:
    """Return whether the file is locked for this descriptor alone; waits so long for others to let go of it.

    Raises: NoLocksError, OSError.
    """
    until = time.monotonic() + patience_seconds
    operation = fcntl.LOCK_EX if patience_seconds == math.inf else fcntl.LOCK_EX | fcntl.LOCK_NB
    while True:
        try:
            fcntl.flock(fd, operation)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE_SECONDS)
        except OSError as error:
            if error.errno in NO_LOCKS:
                raise NoLocksError(error.errno, f"its file system keeps no locks ({error.strerror})") from error
            raise
        else:
            return True
