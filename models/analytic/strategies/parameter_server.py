"""Parameter servers: workers pull weights and push gradients, synchronously or not."""

from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.checks import require_not_negative
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import WORD_BYTES, stage_parameters, stage_time, update_seconds
from crosswind.models.analytic.strategies.strategy import StepTime, require_no_shards, require_one


@dataclass(frozen=True)
class ParameterServer:
    """Synchronous or asynchronous; servers have nodes of their own, and each serves an equal part of the weights.

    Asynchronous workers do not wait for each other, but for the servers all the same. Source: Li et al. 2014, "Scaling
    distributed machine learning with the parameter server".
    """

    name: ClassVar[str] = "parameter_server"

    def step(self, workload: Workload, plan: Plan, machine: Machine) -> StepTime:
        """The parts of one turn of every worker; asynchronous ones hide communication behind the next computation.

        Raises: InvalidInputError.
        """
        require_one(plan, self.name, "tensor", "pipeline")
        require_no_shards(plan, self.name)
        if plan.servers == 0:
            raise InvalidInputError("servers is 0 with strategy parameter_server, expected at least 1")
        stage = stage_time(workload, plan, machine)
        compute = plan.micro_batches * (stage.compute + stage.head)
        parameters = stage_parameters(workload, plan)
        exchange = exchange_seconds(WORD_BYTES * parameters, plan, machine)
        hidden = min(machine.constants.overlap_ratio, 1.0) * compute if plan.asynchronous else 0.0
        updates = plan.ranks if plan.asynchronous else 1  # a server applies each worker's gradients, or their sum
        return StepTime(
            compute=compute,
            data=max(exchange - hidden, exchange / 2),  # weights are waited for in any case
            update=updates * update_seconds(parameters / plan.servers, machine),
            overhead=machine.constants.step_overhead_seconds,
        )


def exchange_seconds(n_bytes: float, plan: Plan, machine: Machine) -> float:
    """Pull and push of n bytes: 2 (alpha + n / min(worker's link, servers x link / workers))."""
    link = machine.between_link
    workers_here = min(plan.ranks_a_node, plan.ranks)
    share = min(link.bytes_per_second / workers_here, plan.servers * link.bytes_per_second / plan.ranks)
    return 2 * (link.alpha_seconds + n_bytes / share)


def staleness(plan: Plan) -> int:
    """Number of updates by others since the pull: workers - 1 when asynchronous and equally fast, else 0."""
    return plan.ranks - 1 if plan.asynchronous else 0


def progress_ratio(plan: Plan, *, loss_a_stale_update: float) -> float:
    """Progress of a step over that of a synchronous one: 1 / (1 + loss x staleness), the loss measured by convergence.

    Source: the 1/staleness step sizes of Zhang et al. 2016, "Staleness-aware async-SGD", as a discount.
    """
    require_not_negative(loss_a_stale_update=loss_a_stale_update)
    return 1 / (1 + loss_a_stale_update * staleness(plan))
