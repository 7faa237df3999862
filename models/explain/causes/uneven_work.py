"""Uneven work: one rank after another comes last with more to compute than the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, at_most, milliseconds

SECONDS_LEAST = 0.001  # a step


@dataclass(frozen=True)
class UnevenWork:
    """Claims mean over steps of the largest work - largest over ranks of the mean work, where that grew.

    Source: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025, for
    sequences of uneven lengths as a cause.
    """

    name: ClassVar[str] = "uneven_work"
    next_action: ClassVar[str] = (
        "Give ranks batches of equal cost: sort or pack sequences by length (a length-grouped sampler), balance "
        "tokens, not samples."
    )
    columns: ClassVar[tuple[str, ...]] = ("uneven",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Compute, beyond what the rank with most work does over the whole run."""
        stands_out = excess.stands_out("uneven", least=SECONDS_LEAST)
        return {"compute": np.where(stands_out, at_most(excess["uneven"], excess.work), 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return what it costs that the work falls on one rank after another."""
        measured, expected = observed.measured["uneven"], observed.expected["uneven"]
        lost = f"work that falls on one rank after another costs {milliseconds(measured)} a step"
        return f"{lost}, expected {milliseconds(expected)}"
