"""Network: every rank had arrived, and the collective still ran longer than expected."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, milliseconds


@dataclass(frozen=True)
class Network:
    """Claims what is left of the fabric's excess; stands last, after causes that slow communication from outside."""

    name: ClassVar[str] = "network"
    next_action: ClassVar[str] = "Look at the links between the run's nodes: rate, errors, congestion by neighbours."
    columns: ClassVar[tuple[str, ...]] = ("fabric",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """The fabric's time."""
        return {"fabric": excess["fabric"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long collectives ran with everybody there."""
        measured, expected = observed.measured["fabric"], observed.expected["fabric"]
        return (
            f"with all ranks there, collectives ran {milliseconds(measured)} a step, expected {milliseconds(expected)}"
        )
