"""Heat: a processor or a GPU lowered its clock to stay cool."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, at_most
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

# Of an AMD GPU the controller counts the cycles in which something held it down, and all cycles.
AMD_REASONS = ("prochot", "thermal", "regulator_thermal", "memory_thermal")
HEAT_THROTTLED = Sampled(
    "heat_throttled",
    (
        Rate("frequency", ("throttled_seconds_total",), device="package%"),
        Rate("gpu", ("throttle_thermal_seconds_total",)),
        *(Rate("amd_gpu", (f"throttle_{reason}_total",), over=("accumulation_total",)) for reason in AMD_REASONS),
    ),
)


class HeatThrottling:
    """Claims the time in which a package or a GPU was throttled by heat, in compute, as far as that grew.

    Source: arch/x86/kernel/cpu/mce/therm_throt.c; nvml.h, NVML_PERF_POLICY_THERMAL.
    """

    name = "heat_throttling"
    next_action = (
        "Have that node's cooling looked at (fans, dust, inlet temperature). Leave it out until then: "
        "#SBATCH --exclude=NODE."
    )
    columns = ("heat_throttled",)
    indicators = (HEAT_THROTTLED,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute, where the rank did not wait for a core."""
        return {"compute": at_most(excess["heat_throttled"], excess.work)}

    def evidence(self, observed: Observed) -> str:
        """Return for how long it was throttled."""
        measured, expected = observed.milliseconds("heat_throttled")
        return f"heat held clocks down for {measured} a step, expected {expected}"
