"""Data parallelism whose ranks shard the optimizer (1), gradients (2) and weights (3)."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine.collectives import all_gather, reduce_scatter
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.layout import data_group
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import (
    WORD_BYTES,
    StageTime,
    stage_parameters,
    stage_time,
)
from crosswind.models.analytic.strategies.data_parallel import exposed
from crosswind.models.analytic.strategies.strategy import StepTime, local_step, require_one


@dataclass(frozen=True)
class Zero:
    """DeepSpeed's ZeRO; stage 3 is PyTorch's FSDP."""

    name: ClassVar[str] = "zero"

    def step(self, workload: Workload, plan: Plan, machine: Machine) -> StepTime:
        """The parts of the step. Raises: InvalidInputError."""
        require_one(plan, self.name, "tensor", "pipeline")
        if plan.zero_stage == 0:
            raise InvalidInputError("zero_stage is 0 with strategy zero, expected 1 to 3")
        if plan.offload != "none":
            raise InvalidInputError(
                f"offload is {plan.offload} with strategy zero, expected none (or strategy offload)"
            )
        stage, parameters = stage_time(workload, plan, machine), stage_parameters(workload, plan)
        data = sharded_seconds(parameters, plan, machine, stage)
        return replace(local_step(stage, parameters, plan, machine), data=data)


def moved_bytes(parameters: float, zero_stage: int) -> float:
    """Return 2 Psi words a step for stages 0 to 2, 3 Psi for stage 3, in bytes; times (p - 1)/p, they are moved.

    Source: Rajbhandari et al. 2020, section 7.
    """
    return WORD_BYTES * parameters * (3 if zero_stage == 3 else 2)


def sharded_seconds(parameters: float, plan: Plan, machine: Machine, stage: StageTime) -> float:
    """Communication of a step that computation does not hide."""
    if plan.data == 1:
        return 0.0
    if plan.zero_stage == 3:
        return _stage_three(parameters, plan, machine, stage)
    group, n_bytes = data_group(plan, machine), WORD_BYTES * parameters
    buckets = max(1, math.ceil(n_bytes / plan.bucket_bytes))
    scattered = reduce_scatter(n_bytes / buckets, group)
    hiding = stage.backward * min(machine.constants.overlap_ratio, 1.0)
    return exposed(buckets, scattered, hiding) + all_gather(n_bytes, group)


def _stage_three(parameters: float, plan: Plan, machine: Machine, stage: StageTime) -> float:
    """Layer by layer: weights gathered forward and backward for each micro-batch, gradients scattered backward.

    The next layer's weights come while one computes, so the first of each pass is always waited for.
    """
    group, n_bytes = data_group(plan, machine), WORD_BYTES * parameters / stage.layers
    overlap = min(machine.constants.overlap_ratio, 1.0)
    forward = (stage.compute - stage.backward) / stage.layers
    backward = stage.backward / stage.layers
    gather, scatter = all_gather(n_bytes, group), reduce_scatter(n_bytes, group)
    first = max(gather, stage.layers * gather - (stage.layers - 1) * overlap * forward)
    both = gather + scatter
    second = max(both, stage.layers * both - (stage.layers - 1) * overlap * backward)
    return plan.micro_batches * (first + second)
