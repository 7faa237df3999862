"""Phases that the training loop marked itself: writing checkpoints, and other work such as evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.evidence.indicators import Indicator


@dataclass(frozen=True)
class SlowCheckpoint:
    """Claims the excess of the checkpoint phase."""

    name: ClassVar[str] = "slow_checkpoint"
    next_action: ClassVar[str] = (
        "Look at the file system that checkpoints go to; write them less often or asynchronously."
    )
    columns: ClassVar[tuple[str, ...]] = ("checkpoint",)
    indicators: ClassVar[tuple[Indicator, ...]] = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the checkpoint phase."""
        return {"checkpoint": excess["checkpoint"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long checkpoints took."""
        return _took("checkpoints", "checkpoint", observed)


@dataclass(frozen=True)
class OtherWork:
    """Claims the excess of the phase marked `other`."""

    name: ClassVar[str] = "other_work"
    next_action: ClassVar[str] = "Look at what the loop does in its phase `other`: evaluation, logging."
    columns: ClassVar[tuple[str, ...]] = ("other",)
    indicators: ClassVar[tuple[Indicator, ...]] = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the phase `other`."""
        return {"other": excess["other"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long it took."""
        return _took("other work", "other", observed)


def _took(work: str, phase: str, observed: Observed) -> str:
    measured, expected = observed.milliseconds(phase)
    return f"{work} took {measured} a step, expected {expected}"
