"""Network: every rank had arrived, and the collective still ran longer than expected."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed


class Network:
    """Claims the rest of the fabric's excess; it comes last, after causes that slow communication from outside."""

    name = "network"
    next_action = "Look at the links between the run's nodes: rate, errors, congestion by neighbours."
    columns = ("fabric",)
    indicators = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the fabric's time."""
        return {"fabric": excess["fabric"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long collectives ran with everybody there."""
        measured, expected = observed.milliseconds("fabric")
        return f"with all ranks there, collectives ran {measured} a step, expected {expected}"
