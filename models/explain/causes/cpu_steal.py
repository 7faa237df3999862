"""CPU steal: the hypervisor ran another guest on the rank's core."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, at_most
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
CORE_TIME = tuple(f"{mode}_seconds_total" for mode in _MODES)
STOLEN = Sampled("stolen", (Rate("cpu", ("steal_seconds_total",), over=CORE_TIME, device="all"),))


class CpuSteal:
    """Claims stolen time, the mean of the node's cores, in compute.

    Source: proc_stat(5), steal.
    """

    name = "cpu_steal"
    next_action = (
        "Ask for a guest with cores of its own (no overcommit, or a dedicated host). Leave this one out of the next "
        "job: #SBATCH --exclude=NODE."
    )
    columns = ("stolen",)
    indicators = (STOLEN,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute, where the rank did not wait for a core of its own guest."""
        return {"compute": at_most(excess["stolen"], excess.work)}

    def evidence(self, observed: Observed) -> str:
        """Return how long cores were away."""
        measured, expected = observed.milliseconds("stolen")
        return f"the hypervisor took {measured} of each core a step, expected {expected}"
