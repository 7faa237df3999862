"""Somebody else's writes on the disk that the rank writes to."""

import os
import tempfile
import time
from typing import ClassVar

from crosswind.ingest.lab import companion
from crosswind.ingest.lab.companion import Companion
from crosswind.ingest.lab.cores import all_but, stay_on
from crosswind.ingest.lab.injectors.injector import Target

CHUNK_BYTES = 4 << 20
FILE_BYTES = 256 << 20


class DiskPressure:
    """Processes that write and sync a file of no name in the scratch folder."""

    kind: ClassVar[str] = "disk_pressure"
    unit: ClassVar[str] = "writers"
    limits: ClassVar[tuple[float, float]] = (1.0, 64.0)

    def __init__(self) -> None:
        self._companions: list[Companion] = []

    def start(self, target: Target, strength: float) -> int:
        """Starts them; the first piece of each is on the disk. Raises: UnavailableError."""
        if not self._companions:
            each = [[str(target.scratch), all_but(target.core)]] * int(strength)
            self._companions = companion.start_all(write, each, within=target.host.command)
        return time.time_ns()

    def stop(self) -> int:
        """Ends them, and with them their files."""
        companions, self._companions = self._companions, []
        companion.kill_all(companions)
        return time.time_ns()


def write(folder: str, cores: list[int]) -> None:
    """Writes and syncs piece after piece until the lab dies."""
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
