"""A file's lock, by which its writer is known to live."""

import os
from pathlib import Path

from crosswind.data.files import take_lock


def locked_or_removed(fd: int, path: Path) -> bool:
    """Return whether this new file is locked; else nothing is left of it. Raises: as `locked`."""
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
