"""Faults that are a number of equal foreign processes, for the duration of the fault."""

import time
from collections.abc import Sequence
from typing import ClassVar

from crosswind.ingest.lab.hosts import companion
from crosswind.ingest.lab.hosts.companion import Companion, Program
from crosswind.ingest.lab.injectors.injector import Target


class Crowd:
    """As many processes as the fault is strong; subclasses name their program and arguments."""

    limits: ClassVar[tuple[float, float]] = (1.0, 64.0)
    program: ClassVar[Program]

    def __init__(self) -> None:
        self._companions: list[Companion] = []

    def arguments(self, target: Target) -> Sequence[object]:
        """Return the program's arguments. Raises: UnavailableError."""
        raise NotImplementedError

    def start(self, target: Target, strength: float) -> int:
        """Start them, and wait until all are at work. Raises: UnavailableError."""
        if not self._companions:
            argument_lists = [self.arguments(target)] * int(strength)
            self._companions = companion.start_all(type(self).program, argument_lists, within=target.host.command)
        return time.time_ns()

    def stop(self) -> int:
        """End them. Raises: UnavailableError when one had ended before."""
        companions, self._companions = self._companions, []
        companion.kill_all(companions)
        return time.time_ns()
