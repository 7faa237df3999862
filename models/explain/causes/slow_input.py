"""Slow input: the last rank to arrive was still waiting for its batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, milliseconds


@dataclass(frozen=True)
class SlowInput:
    """Claims the whole excess of the input phase, which is timed directly."""

    name: ClassVar[str] = "slow_input"
    next_action: ClassVar[str] = (
        "Look at that rank's data source; add loader workers or prefetching, or cache the data."
    )
    columns: ClassVar[tuple[str, ...]] = ("input",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """The input phase."""
        return {"input": excess["input"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long the batches took."""
        measured, expected = observed.measured["input"], observed.expected["input"]
        return f"waiting for batches took {milliseconds(measured)} a step, expected {milliseconds(expected)}"
