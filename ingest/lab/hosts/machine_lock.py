"""The lock of the machine's one laboratory: two would disturb each other's runs."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosswind.data.files import lock_file, take_lock
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
    with lock_file(path) as fd:
        if not take_lock(fd):
            raise ConflictError(
                f"{path}: another laboratory is at work on this machine, and two would disturb each other; wait for it"
            )
        yield
