"""Heat: a processor or a GPU lowered its clock to stay cool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, at_most, milliseconds


@dataclass(frozen=True)
class HeatThrottling:
    """Claims the time in which a package or a GPU was throttled by heat, in compute, as far as that grew.

    Source: arch/x86/kernel/cpu/mce/therm_throt.c; nvml.h, NVML_PERF_POLICY_THERMAL.
    """

    name: ClassVar[str] = "heat_throttling"
    next_action: ClassVar[str] = (
        "Have that node's cooling looked at (fans, dust, inlet temperature), and leave it out until then: "
        "#SBATCH --exclude=NODE."
    )
    columns: ClassVar[tuple[str, ...]] = ("heat_throttled",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Compute, where the rank did not wait for a core."""
        return {"compute": at_most(excess["heat_throttled"], excess.work)}

    def evidence(self, observed: Observed) -> str:
        """For how long it was throttled."""
        measured, expected = observed.measured["heat_throttled"], observed.expected["heat_throttled"]
        return f"heat held clocks down for {milliseconds(measured)} a step, expected {milliseconds(expected)}"
