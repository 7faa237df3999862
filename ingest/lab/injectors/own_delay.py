"""Delays within the rank's training program: of its batches, its computation or its checkpoints."""

import time
from typing import ClassVar

from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.injectors.injector import Target


class OwnDelay:
    """Milliseconds that the training program waits, by the knob of the kind's name."""

    kind: ClassVar[str]
    unit: ClassVar[str]
    limits: ClassVar[tuple[float, float]] = (0.0, 60_000.0)

    def __init__(self) -> None:
        self._delayed: tuple[Conditions, int] | None = None

    def start(self, target: Target, strength: float) -> int:
        """Set the delay."""
        if self._delayed is None:
            target.conditions.set(target.rank, f"{self.kind}_ms", strength)
            self._delayed = target.conditions, target.rank
        return time.time_ns()

    def stop(self) -> int:
        """Clear the delay."""
        if self._delayed is not None:
            conditions, rank = self._delayed
            conditions.set(rank, f"{self.kind}_ms", 0.0)
            self._delayed = None
        return time.time_ns()


class SlowInput(OwnDelay):
    """Milliseconds that the training program waits for each batch."""

    kind: ClassVar[str] = "slow_input"
    unit: ClassVar[str] = "ms a batch"


class SlowRank(OwnDelay):
    """Milliseconds that the training program's computation takes longer in each step."""

    kind: ClassVar[str] = "slow_rank"
    unit: ClassVar[str] = "ms a step"


class LateCheckpoint(OwnDelay):
    """Milliseconds that the training program's checkpoints take longer."""

    kind: ClassVar[str] = "late_checkpoint"
    unit: ClassVar[str] = "ms a checkpoint"
