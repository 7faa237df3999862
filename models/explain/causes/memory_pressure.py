"""Memory pressure: tasks of the node waited for memory to be reclaimed."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, at_most
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

MEMORY_STALLED = Sampled("memory_stalled", (Rate("pressure", ("waiting_seconds_total",), device="memory"),))


class MemoryPressure:
    """Claims the time in which some task waited for memory (PSI), in compute.

    Source: Documentation/accounting/psi.rst.
    """

    name = "memory_pressure"
    next_action = (
        "Give the job more memory (#SBATCH --mem=..., or memory.high of its control group), or let it use less: a "
        "smaller batch, DataLoader(num_workers=fewer)."
    )
    columns = ("memory_stalled",)
    indicators = (MEMORY_STALLED,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute, where the thread waited or was in the kernel: an allocation reclaims for itself."""
        return {"compute": at_most(excess["memory_stalled"], excess.work - excess["cpu_user"])}

    def evidence(self, observed: Observed) -> str:
        """Return for how long tasks waited for memory."""
        measured, expected = observed.milliseconds("memory_stalled")
        return f"tasks waited {measured} a step for memory, expected {expected}"
