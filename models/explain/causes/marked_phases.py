"""Phases that the training loop marked itself: writing checkpoints, and other work such as evaluation."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed


class SlowCheckpoint:
    """Claims the excess of the checkpoint phase."""

    name = "slow_checkpoint"
    next_action = "Look at the file system that checkpoints go to; write them less often or asynchronously."
    columns = ("checkpoint",)
    indicators = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the checkpoint phase."""
        return {"checkpoint": excess["checkpoint"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long checkpoints took."""
        return _took("checkpoints", "checkpoint", observed)


class OtherWork:
    """Claims the excess of the phase marked `other`."""

    name = "other_work"
    next_action = "Look at what the loop does in its phase `other`: evaluation, logging."
    columns = ("other",)
    indicators = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the phase `other`."""
        return {"other": excess["other"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long it took."""
        return _took("other work", "other", observed)


def _took(work: str, phase: str, observed: Observed) -> str:
    measured, expected = observed.milliseconds(phase)
    return f"{work} took {measured} a step, expected {expected}"
