"""Swap: the rank waited for pages of its own memory to come back from the swap space."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, at_most
from crosswind.models.explain.causes.memory_pressure import MEMORY_STALLED
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

PAGES_LEAST = 10.0  # a step
SWAPPED_IN = Sampled("swapped_in", (Rate("memory", ("swapped_in_pages_total",)),))


class Swap:
    """Claims idle time of compute where pages were read from swap clearly more often than in the cohort.

    Source: pswpin of /proc/vmstat; Documentation/accounting/psi.rst.
    """

    name = "swap"
    next_action = (
        "Give the job more memory (#SBATCH --mem=...), or let it use less: a smaller batch, fewer loader workers; "
        "swapoff -a on nodes that compute."
    )
    columns = ("compute",)
    indicators = (SWAPPED_IN, MEMORY_STALLED)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute in which the rank was idle; no more than tasks waited for memory, where that was sampled."""
        swapped = excess.is_beyond_usual("swapped_in", least=PAGES_LEAST)
        return {"compute": np.where(swapped, at_most(excess.idle, excess["memory_stalled"]), 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return the pages that came back."""
        measured, expected = observed.measured["swapped_in"], observed.expected["swapped_in"]
        return f"{measured:.3g} pages a step were read from swap, expected {expected:.3g}"
