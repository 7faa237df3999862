"""Foreign writes to the rank's disk."""

import os
import tempfile
from typing import ClassVar

from crosswind.ingest.lab.hosts import companion
from crosswind.ingest.lab.hosts.cores import all_but, stay_on
from crosswind.ingest.lab.injectors.crowd import Crowd
from crosswind.ingest.lab.injectors.injector import Target

CHUNK_BYTES = 4 << 20
FILE_BYTES = 256 << 20


class DiskPressure(Crowd):
    """Processes that write and sync a file of no name in the scratch folder."""

    kind: ClassVar[str] = "disk_pressure"
    unit: ClassVar[str] = "writers"

    def arguments(self, target: Target) -> list[object]:
        """Return the folder, and other cores than the rank's."""
        return [str(target.scratch), all_but(target.core)]


def write(folder: str, cores: list[int]) -> None:
    """Write and sync piece after piece until the lab dies."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        companion.become_nobody()
        stay_on(cores)
        companion.end_with_lab()
        chunk = os.urandom(CHUNK_BYTES)
        _put(file.fileno(), chunk, 0)
        companion.say_ready()
        while True:
            for offset in range(0, FILE_BYTES, CHUNK_BYTES):
                _put(file.fileno(), chunk, offset)


def _put(fd: int, chunk: bytes, offset: int) -> None:
    os.pwrite(fd, chunk, offset)
    os.fsync(fd)


DiskPressure.program = write
