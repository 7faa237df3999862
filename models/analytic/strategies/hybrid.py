"""Data, tensor and pipeline parallelism at once; sharded or not."""

from dataclasses import dataclass, replace
from typing import ClassVar

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import stage_parameters, stage_time
from crosswind.models.analytic.strategies.data_parallel import gradient_seconds
from crosswind.models.analytic.strategies.pipeline import bubble_seconds, transfer_seconds
from crosswind.models.analytic.strategies.strategy import StepTime, local_step
from crosswind.models.analytic.strategies.zero import sharded_seconds


@dataclass(frozen=True)
class Hybrid:
    """Three-dimensional parallelism (Narayanan et al. 2021): the sum of the others' parts, and equal to each alone."""

    name: ClassVar[str] = "hybrid"

    def step(self, workload: Workload, plan: Plan, machine: Machine) -> StepTime:
        """The parts of the step. Raises: InvalidInputError."""
        if plan.offload != "none":
            raise InvalidInputError(
                f"offload is {plan.offload} with strategy hybrid, expected none (or strategy offload)"
            )
        stage, parameters = stage_time(workload, plan, machine), stage_parameters(workload, plan)
        return replace(
            local_step(stage, parameters, plan, machine),
            data=sharded_seconds(parameters, plan, machine, stage)
            if plan.zero_stage
            else gradient_seconds(parameters, plan, machine, backward_seconds=stage.backward),
            transfer=transfer_seconds(workload, plan, machine),
            bubble=bubble_seconds(stage, plan),
        )
