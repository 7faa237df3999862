"""Foreign processes on the rank's core."""

from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts import companion
from crosswind.ingest.lab.hosts.cores import core_of, stay_on
from crosswind.ingest.lab.injectors.crowd import Crowd
from crosswind.ingest.lab.injectors.injector import Target


class CpuHog(Crowd):
    """Processes that spin."""

    kind: ClassVar[str] = "cpu_hog"
    unit: ClassVar[str] = "processes"

    def arguments(self, target: Target) -> list[object]:
        """Return the core that the rank is pinned to, or else ran on last. Raises: UnavailableError."""
        return [core_to_share(target)]


def core_to_share(target: Target) -> int:
    """Return the rank's core. Raises: UnavailableError."""
    if target.core is not None:
        return target.core
    if not target.pids:
        raise UnavailableError(f"rank {target.rank}: neither its core nor a process is known")
    return core_of(target.pids[0])


def spin(core: int) -> None:
    """Spin until the lab dies."""
    companion.become_nobody()
    companion.end_with_lab()
    stay_on([core])
    companion.say_ready()
    while True:
        pass


CpuHog.program = spin
