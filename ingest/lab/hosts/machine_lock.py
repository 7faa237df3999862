"""The lock of the machine's one laboratory: two would disturb each other's runs."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosswind.data.schema.errors import ConflictError

FOLDER = Path("/run")
NAME = "crosswind-lab.lock"


def machine_lock() -> Path:
    """Return the file that a laboratory of this machine holds locked."""
    return (FOLDER if os.access(FOLDER, os.W_OK) else Path(tempfile.gettempdir())) / NAME


@contextmanager
def alone(lock: Path | None = None) -> Iterator[None]:
    """Hold the lock, which ends with the process. Raises: ConflictError."""
    path = lock or machine_lock()
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
    try:
        _take(fd, path)
        yield
    finally:
        os.close(fd)


def _take(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConflictError(
            f"{path}: another laboratory is at work on this machine, and two would disturb each other; wait for it"
        ) from None
