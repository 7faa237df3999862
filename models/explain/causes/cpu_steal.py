"""CPU steal: the hypervisor ran another guest on the rank's core."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.conditions.reading import CPU_BUSY, Over
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

# Of the time in which cores had work: idle ones lose nothing, and a node may have many of them. Some sources have the
# cores alone, others their sum alone.
STOLEN = Sampled(
    "stolen",
    tuple(
        Rate("cpu", ("steal_seconds_total",), Over.SUM, over=CPU_BUSY, device=devices) for devices in ("cpu%", "all")
    ),
)


STEAL = "cpu_steal"


class CpuSteal:
    """Claims the share of a step that the hypervisor took from cores with work: in compute, then of the fabric's time.

    A thread whose core is away neither runs nor waits for a core of its guest; one behind it waits for both.
    Source: proc_stat(5), steal; Documentation/virt/kvm/x86/msr.rst, MSR_KVM_STEAL_TIME.
    """

    name = STEAL
    next_action = (
        "Ask for a guest with cores of its own (no overcommit, or a dedicated host). Leave this one out of the next "
        "job: #SBATCH --exclude=NODE."
    )
    columns = ("stolen",)
    indicators = (STOLEN,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute, and as much of the fabric's time as is left."""
        compute = np.minimum(excess["stolen"], np.maximum(excess["compute"], 0.0))
        return {"compute": compute, "fabric": excess["stolen"] - compute}

    def evidence(self, observed: Observed) -> str:
        """Return for how long cores with work were away."""
        measured, expected = observed.milliseconds("stolen")
        return f"the hypervisor took {measured} a step from cores with work, expected {expected}"
