"""Pipeline parallelism: micro-batches flow through stages of layers."""

from dataclasses import dataclass, replace
from typing import ClassVar

from crosswind.models.analytic.machine.collectives import all_gather
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.layout import stage_link, tensor_group
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import StageTime, stage_parameters, stage_time
from crosswind.models.analytic.strategies.strategy import StepTime, local_step, require_no_shards, require_one


@dataclass(frozen=True)
class PipelineParallel:
    """GPipe, 1F1B with a flush (PipeDream), and Megatron-LM's interleaved schedule."""

    name: ClassVar[str] = "pipeline"

    def step(self, workload: Workload, plan: Plan, machine: Machine) -> StepTime:
        """The parts of the step. Raises: InvalidInputError."""
        require_one(plan, self.name, "data", "tensor")
        require_no_shards(plan, self.name)
        stage, parameters = stage_time(workload, plan, machine), stage_parameters(workload, plan)
        transfer = transfer_seconds(workload, plan, machine)
        step = local_step(stage, parameters, plan, machine)
        return replace(step, transfer=transfer, bubble=bubble_seconds(stage, plan))


def bubble_ratio(plan: Plan) -> float:
    """Share of a step of equal stages in which a rank waits: (p - 1)/(v m + p - 1); v is 1 but for interleaved.

    Sources: Huang et al. 2019, "GPipe"; Narayanan et al. 2021, section 2.2, who divide by the ideal time v m instead.
    """
    waits = plan.pipeline - 1
    return waits / (plan.interleave * plan.micro_batches + waits)


def bubble_seconds(stage: StageTime, plan: Plan) -> float:
    """Return (p - 1)/v micro-batches of a stage, in seconds: the same for GPipe and 1F1B, which differ in memory."""
    return (plan.pipeline - 1) / plan.interleave * (stage.compute + stage.tensor)


def transfer_seconds(workload: Workload, plan: Plan, machine: Machine) -> float:
    """Activations forward and their gradients backward, for v m + p - 1 turns; 0 for one stage.

    Tensor ranks hold the same activations: each sends its part, and the receivers gather. Source: Narayanan et al.
    2021, section 4.1 (scatter/gather).
    """
    if plan.pipeline == 1:
        return 0.0
    n_bytes = plan.micro_batch * workload.boundary_bytes
    turns = plan.interleave * plan.micro_batches + plan.pipeline - 1
    gathered = all_gather(n_bytes, tensor_group(plan, machine))
    return 2 * turns * (stage_link(plan, machine).seconds(n_bytes / plan.tensor) + gathered)
