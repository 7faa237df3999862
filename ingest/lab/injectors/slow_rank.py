"""The rank computes longer."""

import time
from typing import ClassVar

from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.injectors.injector import Target

KNOB = "slow_rank_ms"


class SlowRank:
    """Milliseconds that the training program's computation takes longer in each step."""

    kind: ClassVar[str] = "slow_rank"
    unit: ClassVar[str] = "ms a step"
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
