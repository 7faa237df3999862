"""CPU contention: the last rank to arrive was ready to run, and something else ran on its core."""

from collections.abc import Mapping

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed


class CpuContention:
    """Claims run-queue wait: of the loop's thread in compute, of the communication threads in the fabric's time.

    Source: schedstat field 2, time spent runnable but not running (Documentation/scheduler/sched-stats.rst).
    """

    name = "cpu_contention"
    next_action = "See what else runs on that node (crosswind doctor, top); give each rank cores of its own and pin it."
    columns = ("run_queue_wait", "comm_thread_wait")
    indicators = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute by the loop's thread, fabric by the others."""
        return {"compute": excess["run_queue_wait"], "fabric": excess["comm_thread_wait"]}

    def evidence(self, observed: Observed) -> str:
        """Return how long threads waited for a core."""
        measured, expected = observed.milliseconds("run_queue_wait")
        return f"its thread waited {measured} a step for a core, expected {expected}"
