"""Tensor parallelism: every layer is split over ranks, which all-reduce its activations."""

from dataclasses import dataclass
from typing import ClassVar

from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import stage_parameters, stage_time
from crosswind.models.analytic.strategies.strategy import StepTime, local_step, require_no_shards, require_one


@dataclass(frozen=True)
class TensorParallel:
    """Megatron-LM's intra-layer parallelism, Mesh-TensorFlow.

    Four all-reduces of b s h words a layer and step, none hidden. Source: Shoeybi et al. 2019, "Megatron-LM".
    """

    name: ClassVar[str] = "tensor"

    def step(self, workload: Workload, plan: Plan, machine: Machine) -> StepTime:
        """The parts of the step. Raises: InvalidInputError."""
        require_one(plan, self.name, "data", "pipeline")
        require_no_shards(plan, self.name)
        stage, parameters = stage_time(workload, plan, machine), stage_parameters(workload, plan)
        return local_step(stage, parameters, plan, machine)
