"""Neighbours' traffic: the run's links carried more than the run itself ever sends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, milliseconds

SECONDS_LEAST = 0.0005  # a step


@dataclass(frozen=True)
class NeighbourTraffic:
    """Claims bytes over the link's speed, as far as they are more than the cohort's: its runs send the same bytes.

    A transfer that shares its link is delayed by no more than the others' bytes that go through it meanwhile.
    Source: max-min fairness: Bertsekas and Gallager, "Data Networks" (1992), section 6.5.2.
    """

    name: ClassVar[str] = "neighbour_traffic"
    next_action: ClassVar[str] = (
        "See whose job shares the nodes or the switch (crosswind interference) and ask for nodes alone: "
        "#SBATCH --exclusive, --switches=1."
    )
    columns: ClassVar[tuple[str, ...]] = ("link_busy", "fabric")

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """The fabric's time, no more than the busiest link needs for the bytes that are too many."""
        return {"fabric": np.where(excess.stands_out("link_busy", least=SECONDS_LEAST), excess["link_busy"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """For how long the link carried something."""
        measured, expected = observed.measured["link_busy"], observed.expected["link_busy"]
        busy = f"its busiest link carried bytes for {milliseconds(measured)} a step"
        return f"{busy}, expected {milliseconds(expected)} for the run's own"
