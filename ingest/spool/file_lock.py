"""The lock of a spool file: while it is held, the writer lives."""

import os
from pathlib import Path

from crosswind.data.files import take_lock


def locked_or_removed(fd: int, path: Path) -> bool:
    """Lock a new file, or remove it. Return whether it is locked. Raises: as `locked`."""
    try:
        if locked(fd, path):
            return True
    except OSError:
        os.close(fd)
        path.unlink(missing_ok=True)
        raise
    os.close(fd)
    return False


def locked(fd: int, path: Path) -> bool:
    """Return whether the file is ours now. Raises: NoLocksError, OSError."""
    try:
        return take_lock(fd) and os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False
