"""Low clock: cores or GPUs ran slower than in the other runs, and nothing says why."""

from collections.abc import Mapping, Sequence

import pandas as pd

from crosswind.data.schema.prediction import Floats
from crosswind.models.conditions.reading import Over
from crosswind.models.explain.causes.cause import Excess, Observed, at_most
from crosswind.models.explain.evidence.indicators import ComparedRun, ComputeLost, Sampled
from crosswind.models.explain.evidence.rate import Rate

IN_USE = "utilization_ratio > 0"
GPU_CLOCKS = (("gpu", "sm_clock_hertz"), ("amd_gpu", "graphics_clock_hertz"))
# Hertz: of the busiest core, and of the slowest GPU in use, on the slowest node.
CLOCKS = (
    Sampled("core_clock", (Rate("frequency", ("frequency_hertz",), nodes=Over.MIN, device="cpu%"),)),
    Sampled(
        "gpu_clock",
        tuple(
            Rate(metric_set, (clock,), Over.MIN, Over.MIN, only=IN_USE, asks=("utilization_ratio",))
            for metric_set, clock in GPU_CLOCKS
        ),
    ),
)


def missing_clock_shares(runs: Sequence[ComparedRun]) -> dict[str, float]:
    """Return by run id the largest share by which one of its clocks lies below the highest of its system's runs.

    NaN where no clock was sampled.
    """
    hertz = pd.DataFrame([[compared.samples[clock.column] for clock in CLOCKS] for compared in runs])
    highest = hertz.groupby([compared.run.system for compared in runs]).transform("max") if runs else hertz
    lost = 1 - hertz / highest.where(highest > 0)
    return dict(zip((compared.run.run_id for compared in runs), lost.max(axis=1).to_list(), strict=True))


class LowClock:
    """Claims compute in proportion to the share by which clocks lay below the highest of the runs that are compared.

    Time of work that a clock paces is in proportion to 1 / clock: compute x (1 - clock / highest) would be saved.
    Source: Documentation/admin-guide/pm/cpufreq.rst; nvml.h, nvmlDeviceGetClockInfo.
    """

    name = "low_clock"
    next_action = (
        "Set the governor and the clocks alike on all nodes: cpupower frequency-set -g performance, nvidia-smi -lgc; "
        "#SBATCH --cpu-freq=performance."
    )
    columns = ("clock_lost",)
    indicators = (ComputeLost("clock_lost", missing_clock_shares, CLOCKS),)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute, where the rank did not wait for a core."""
        return {"compute": at_most(excess["clock_lost"], excess.work)}

    def evidence(self, observed: Observed) -> str:
        """Return the cost of the missing share of the clock."""
        measured, expected = observed.milliseconds("clock_lost")
        return f"clocks below the cohort's highest cost {measured} a step, expected {expected}"
