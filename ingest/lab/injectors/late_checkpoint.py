"""The rank's checkpoints take longer."""

import time
from typing import ClassVar

from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.injectors.injector import Target

KNOB = "late_checkpoint_ms"


class LateCheckpoint:
    """Milliseconds that the training program's checkpoints take longer."""

    kind: ClassVar[str] = "late_checkpoint"
    unit: ClassVar[str] = "ms a checkpoint"
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
