"""A file's lock, by which its writer is known to live."""

import errno
import fcntl
import os
from pathlib import Path

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # NFS without lockd, Lustre without flock


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
    """Return whether the file is ours now. Raises: OSError, which says so where the file system has no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(fd), path.lstat())
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise OSError(error.errno, f"its file system keeps no locks ({error.strerror})") from error
        raise
