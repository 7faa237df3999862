"""Foreign processes on the memory bus."""

from typing import ClassVar

from crosswind.ingest.lab.hosts import companion
from crosswind.ingest.lab.hosts.cores import all_but, stay_on
from crosswind.ingest.lab.injectors.crowd import Crowd
from crosswind.ingest.lab.injectors.injector import Target

BUFFER_MEBIBYTES = 256  # two of them pass through the largest caches


class MemoryTraffic(Crowd):
    """Processes that copy one large buffer to another, next to the rank's core if there is another one."""

    kind: ClassVar[str] = "memory_traffic"
    unit: ClassVar[str] = "processes"

    def arguments(self, target: Target) -> list[object]:
        """Return other cores than the rank's, and the size of a buffer."""
        return [all_but(target.core), BUFFER_MEBIBYTES]


def copy(cores: list[int], mebibytes: int) -> None:
    """Copy back and forth until the lab dies."""
    companion.become_nobody()
    stay_on(cores)
    companion.end_with_lab()
    source, copied = bytearray(mebibytes << 20), bytearray(mebibytes << 20)
    copied[:] = source
    companion.say_ready()
    while True:
        source[:] = copied
        copied[:] = source


MemoryTraffic.program = copy
