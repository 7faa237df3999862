"""Low clock: cores or GPUs ran slower than in the other runs, and nothing says why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, at_most, milliseconds


@dataclass(frozen=True)
class LowClock:
    """Claims compute in proportion to the share by which clocks lay below the highest of the runs that are compared.

    Time of work that a clock paces is in proportion to 1 / clock: compute x (1 - clock / highest) would be saved.
    Source: Documentation/admin-guide/pm/cpufreq.rst; nvml.h, nvmlDeviceGetClockInfo.
    """

    name: ClassVar[str] = "low_clock"
    next_action: ClassVar[str] = (
        "Set the governor and the clocks alike on all nodes: cpupower frequency-set -g performance, nvidia-smi -lgc; "
        "#SBATCH --cpu-freq=performance."
    )
    columns: ClassVar[tuple[str, ...]] = ("clock_lost",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Compute, where the rank did not wait for a core."""
        return {"compute": at_most(excess["clock_lost"], excess.work)}

    def evidence(self, observed: Observed) -> str:
        """Return what the missing share of the clock costs."""
        measured, expected = observed.measured["clock_lost"], observed.expected["clock_lost"]
        return (
            f"clocks below the cohort's highest cost {milliseconds(measured)} a step, expected {milliseconds(expected)}"
        )
