"""Power cap: a GPU lowered its clocks to stay within its power limit."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, at_most
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

POWER_THROTTLED = Sampled(
    "power_throttled",
    (
        Rate("gpu", ("throttle_power_seconds_total",)),
        Rate("gpu", ("throttle_board_limit_seconds_total",)),
        Rate("amd_gpu", ("throttle_power_total",), over=("accumulation_total",)),
    ),
)


class PowerCap:
    """Claims the time in which the limit of a GPU, or of its board, held clocks down, in compute, as far as that grew.

    Source: nvml.h, NVML_PERF_POLICY_POWER and NVML_PERF_POLICY_BOARD_LIMIT.
    """

    name = "power_cap"
    next_action = (
        "Compare the power limits of the run's GPUs (nvidia-smi -q -d POWER) and set them alike: nvidia-smi -pl WATTS."
    )
    columns = ("power_throttled",)
    indicators = (POWER_THROTTLED,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute, where the rank did not wait for a core."""
        return {"compute": at_most(excess["power_throttled"], excess.work)}

    def evidence(self, observed: Observed) -> str:
        """Return for how long it was throttled."""
        measured, expected = observed.milliseconds("power_throttled")
        return f"a power limit held clocks down for {measured} a step, expected {expected}"
