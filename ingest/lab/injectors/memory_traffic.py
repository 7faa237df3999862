"""Somebody else's processes on the memory bus."""

import time
from typing import ClassVar

from crosswind.ingest.lab import companion
from crosswind.ingest.lab.companion import Companion
from crosswind.ingest.lab.cores import all_but, stay_on
from crosswind.ingest.lab.injectors.injector import Target

BUFFER_MEBIBYTES = 256  # two of them pass through the largest caches


class MemoryTraffic:
    """Processes that copy one large buffer to another, beside the rank's core where there is another one."""

    kind: ClassVar[str] = "memory_traffic"
    unit: ClassVar[str] = "processes"
    limits: ClassVar[tuple[float, float]] = (1.0, 64.0)

    def __init__(self) -> None:
        self._companions: list[Companion] = []

    def start(self, target: Target, strength: float) -> int:
        """Starts them; each has copied its buffer once. Raises: UnavailableError."""
        if not self._companions:
            each = [[all_but(target.core), BUFFER_MEBIBYTES]] * int(strength)
            self._companions = companion.start_all(copy, each, within=target.host.command)
        return time.time_ns()

    def stop(self) -> int:
        """Ends them."""
        companions, self._companions = self._companions, []
        companion.kill_all(companions)
        return time.time_ns()


def copy(cores: list[int], mebibytes: int) -> None:
    """Copies to and fro until the lab dies."""
    companion.become_nobody()
    stay_on(cores)
    companion.end_with_lab()
    source, copied = bytearray(mebibytes << 20), bytearray(mebibytes << 20)
    copied[:] = source
    companion.say_ready()
    while True:
        source[:] = copied
        copied[:] = source
