"""CPU quota: a control group stopped the rank's processes for the rest of each period."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

THROTTLED = Sampled("throttled", (Rate("cgroup", ("throttled_seconds_total",)),), is_zero_unsampled=True)


class CpuQuota:
    """Claims the time for which the group was throttled, in compute.

    Source: `cpu.stat`, throttled time (Documentation/scheduler/sched-bwc.rst).
    """

    name = "cpu_quota"
    next_action = "Raise or remove the CPU limit of the job's control group, or start fewer threads in it."
    columns = ("throttled",)
    indicators = (THROTTLED,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute."""
        return {"compute": excess["throttled"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long it was stopped."""
        measured, expected = observed.milliseconds("throttled")
        return f"a CPU quota stopped it for {measured} a step, expected {expected}"
