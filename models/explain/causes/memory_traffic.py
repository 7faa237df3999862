"""Memory traffic: the last rank to arrive spent its time having the kernel map and clear fresh pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosswind.data.prediction import Floats
from crosswind.models.explain.causes.cause import Observed, milliseconds


@dataclass(frozen=True)
class MemoryTraffic:
    """Claims kernel CPU time where page faults rose with it."""

    name: ClassVar[str] = "memory_traffic"
    next_action: ClassVar[str] = (
        "Look for buffers allocated and freed in every step: reuse them, or keep freed memory in the allocator."
    )

    def claims(self, excess: Mapping[str, Floats]) -> Mapping[str, Floats]:
        """Compute, as far as kernel time grew and page faults did too."""
        faulted = excess["minor_faults"] > 0
        return {"compute": np.where(faulted, excess["cpu_system"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Page faults and kernel time."""
        faults, expected = observed.measured["minor_faults"], observed.expected["minor_faults"]
        kernel = milliseconds(observed.measured["cpu_system"])
        return f"{faults:.0f} page faults a step, expected {expected:.0f}; {kernel} of kernel time a step"
