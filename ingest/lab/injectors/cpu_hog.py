"""Somebody else's processes on the rank's core."""

import time
from typing import ClassVar

from crosswind.data.errors import UnavailableError
from crosswind.ingest.lab import companion
from crosswind.ingest.lab.companion import Companion
from crosswind.ingest.lab.cores import core_of, stay_on
from crosswind.ingest.lab.injectors.injector import Target


class CpuHog:
    """Processes that spin."""

    kind: ClassVar[str] = "cpu_hog"
    unit: ClassVar[str] = "processes"
    limits: ClassVar[tuple[float, float]] = (1.0, 64.0)

    def __init__(self) -> None:
        self._companions: list[Companion] = []

    def start(self, target: Target, strength: float) -> int:
        """Starts them on the core that the rank is pinned to, or else ran on last. Raises: UnavailableError."""
        if not self._companions:
            core = core_to_share(target)
            self._companions = companion.start_all(spin, [[core]] * int(strength), within=target.host.command)
        return time.time_ns()

    def stop(self) -> int:
        """Ends them."""
        companions, self._companions = self._companions, []
        companion.kill_all(companions)
        return time.time_ns()


def core_to_share(target: Target) -> int:
    """The rank's core. Raises: UnavailableError."""
    if target.core is not None:
        return target.core
    if not target.pids:
        raise UnavailableError(f"rank {target.rank}: neither its core nor a process is known")
    return core_of(target.pids[0])


def spin(core: int) -> None:
    """Spins until the lab dies."""
    companion.become_nobody()
    companion.end_with_lab()
    stay_on([core])
    companion.say_ready()
    while True:
        pass
