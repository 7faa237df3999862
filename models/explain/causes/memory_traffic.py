"""Memory traffic: the last rank to arrive spent its time having the kernel map and clear fresh pages."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, milliseconds

FAULTS_LEAST = 50.0  # a step


class MemoryTraffic:
    """Claims kernel CPU time where page faults rose with it."""

    name = "memory_traffic"
    next_action = (
        "Look for buffers allocated and freed in every step: reuse them, or keep freed memory in the allocator."
    )
    columns = ("cpu_system",)
    indicators = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute, as far as kernel time grew and page faults did too."""
        faulted = excess.is_beyond_usual("minor_faults", least=FAULTS_LEAST)
        return {"compute": np.where(faulted, excess["cpu_system"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return the page faults and kernel time."""
        faults, expected = observed.measured["minor_faults"], observed.expected["minor_faults"]
        kernel = milliseconds(observed.measured["cpu_system"])
        return f"{faults:.0f} page faults a step, expected {expected:.0f}; {kernel} of kernel time a step"
