"""Network: every rank had arrived, and the collective still ran longer than expected."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.evidence.indicators import Indicator


@dataclass(frozen=True)
class Network:
    """Claims the rest of the fabric's excess; it comes last, after causes that slow communication from outside."""

    name: ClassVar[str] = "network"
    next_action: ClassVar[str] = "Look at the links between the run's nodes: rate, errors, congestion by neighbours."
    columns: ClassVar[tuple[str, ...]] = ("fabric",)
    indicators: ClassVar[tuple[Indicator, ...]] = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the fabric's time."""
        return {"fabric": excess["fabric"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long collectives ran with everybody there."""
        measured, expected = observed.milliseconds("fabric")
        return f"with all ranks there, collectives ran {measured} a step, expected {expected}"
