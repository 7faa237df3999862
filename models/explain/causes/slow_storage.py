"""Slow storage: the last rank waited for its batch while tasks of its job waited for storage."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, filling
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

IO_STALLED = Sampled(
    "io_stalled",
    (
        Rate("cgroup", ("io_waiting_seconds_total",)),
        Rate("nfs", ("read_execute_seconds_total",)),
        Rate("lustre", ("read_seconds_total",)),
    ),
)


class SlowStorage:
    """Claims the input phase, as far as tasks of the job waited longer for storage (PSI), or reads of its node did.

    Source: Documentation/accounting/psi.rst; linux/nfs_iostat.h; lustre/llite/lproc_llite.c.
    """

    name = "slow_storage"
    next_action = (
        "Copy the data set to a local disk before training ($SLURM_TMPDIR), pack small files into large ones, or raise "
        "DataLoader(prefetch_factor=...)."
    )
    columns = ("io_stalled",)
    indicators = (IO_STALLED,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the input phase."""
        return {"input": filling(excess, "io_stalled", "input")}

    def evidence(self, observed: Observed) -> str:
        """Return for how long tasks waited for storage."""
        measured, expected = observed.milliseconds("io_stalled")
        return f"tasks of the job waited {measured} a step for storage, expected {expected}"
