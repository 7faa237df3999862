"""Every layer is split over ranks, which all-reduce its activations."""

from dataclasses import dataclass
from typing import ClassVar

from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import stage_parameters, stage_time, update_seconds
from crosswind.models.analytic.strategies.strategy import StepTime, require_no_shards, require_one


@dataclass(frozen=True)
class TensorParallel:
    """Megatron-LM's intra-layer parallelism, Mesh-TensorFlow.

    Four all-reduces of b s h words a layer and step, none hidden. Source: Shoeybi et al. 2019, "Megatron-LM".
    """

    name: ClassVar[str] = "tensor"

    def step(self, workload: Workload, plan: Plan, machine: Machine) -> StepTime:
        """Raises: InvalidInputError."""
        require_one(plan, self.name, "data", "pipeline")
        require_no_shards(plan, self.name)
        stage = stage_time(workload, plan, machine)
        return StepTime(
            compute=plan.micro_batches * (stage.compute + stage.head),
            tensor=plan.micro_batches * stage.tensor,
            update=update_seconds(stage_parameters(workload, plan), machine),
            overhead=machine.constants.step_overhead_seconds,
        )
