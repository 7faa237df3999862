"""Slow input: the last rank to arrive was still waiting for its batch."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed


class SlowInput:
    """Claims the whole excess of the input phase, which is timed directly."""

    name = "slow_input"
    next_action = "Look at that rank's data source; add loader workers or prefetching, or cache the data."
    columns = ("input",)
    indicators = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the input phase."""
        return {"input": excess["input"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long the batches took."""
        measured, expected = observed.milliseconds("input")
        return f"waiting for batches took {measured} a step, expected {expected}"
