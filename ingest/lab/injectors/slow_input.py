"""The rank's batches come late."""

import time
from typing import ClassVar

from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.injectors.injector import Target

KNOB = "slow_input_ms"


class SlowInput:
    """Milliseconds that the training program waits for each batch."""

    kind: ClassVar[str] = "slow_input"
    unit: ClassVar[str] = "ms a batch"
    limits: ClassVar[tuple[float, float]] = (0.0, 60_000.0)

    def __init__(self) -> None:
        self._told: tuple[Conditions, int] | None = None

    def start(self, target: Target, strength: float) -> int:
        """Tells the rank."""
        if self._told is None:
            target.conditions.set(target.rank, KNOB, strength)
            self._told = target.conditions, target.rank
        return time.time_ns()

    def stop(self) -> int:
        """Tells the rank that it is over."""
        if self._told is not None:
            conditions, rank = self._told
            conditions.set(rank, KNOB, 0.0)
            self._told = None
        return time.time_ns()
