"""Busy loaders: the last rank waited for its batch while tasks of its job waited for cores."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, filling
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

CPU_WAITED = Sampled("cpu_waited", (Rate("cgroup", ("cpu_waiting_seconds_total",)),))


class BusyLoaders:
    """Claims the input phase, as far as some task of the job waited longer for a core (PSI): workers that decode.

    Source: Documentation/accounting/psi.rst.
    """

    name = "busy_loaders"
    next_action = (
        "Give the loaders cores (#SBATCH --cpus-per-task=...; DataLoader(num_workers=cores - 1)), or decode less: "
        "smaller images, prepared files, a GPU decoder."
    )
    columns = ("cpu_waited",)
    indicators = (CPU_WAITED,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the input phase."""
        return {"input": filling(excess, "cpu_waited", "input")}

    def evidence(self, observed: Observed) -> str:
        """Return for how long tasks waited for a core."""
        measured, expected = observed.milliseconds("cpu_waited")
        return f"tasks of the job waited {measured} a step for a core, expected {expected}"
