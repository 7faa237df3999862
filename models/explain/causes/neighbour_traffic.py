"""Neighbours' traffic: the run's links carried more than the run itself ever sends."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.conditions.reading import BYTES
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

SECONDS_LEAST = 0.0005  # a step
LINK_BUSY = Sampled(
    "link_busy",
    (
        *(Rate("network", (column,), per="speed_bytes_per_second", only="device <> 'lo'") for column in BYTES),
        *(Rate("infiniband", (column,), per="rate_bytes_per_second") for column in BYTES),
    ),
    on_links=True,
)


class NeighbourTraffic:
    """Claims bytes over the link's speed, as far as they are more than the cohort's: its runs send the same bytes.

    A transfer that shares its link is delayed by no more than the others' bytes that go through it meanwhile.
    Source: max-min fairness: Bertsekas and Gallager, "Data Networks" (1992), section 6.5.2.
    """

    name = "neighbour_traffic"
    next_action = (
        "See whose job shares the nodes or the switch (crosswind interference) and ask for nodes alone: "
        "#SBATCH --exclusive, --switches=1."
    )
    columns = ("link_busy", "fabric")
    indicators = (LINK_BUSY,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the fabric's time, no more than the busiest link needs for the bytes that are too many."""
        return {"fabric": np.where(excess.is_beyond_usual("link_busy", least=SECONDS_LEAST), excess["link_busy"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return for how long the link carried something."""
        measured, expected = observed.milliseconds("link_busy")
        busy = f"its busiest link carried bytes for {measured} a step"
        return f"{busy}, expected {expected} for the run's own"
