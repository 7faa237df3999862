"""Data parallelism: every rank has the whole model; gradients are all-reduced in buckets during the backward pass."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from crosswind.models.analytic.machine.collectives import best_all_reduce
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.layout import data_group
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import WORD_BYTES, stage_parameters, stage_time
from crosswind.models.analytic.strategies.strategy import StepTime, local_step, require_no_shards, require_one


@dataclass(frozen=True)
class DataParallel:
    """PyTorch's DistributedDataParallel, Horovod; ring, tree or hierarchical, whichever is faster."""

    name: ClassVar[str] = "data_parallel"

    def step(self, workload: Workload, plan: Plan, machine: Machine) -> StepTime:
        """The parts of the step. Raises: InvalidInputError."""
        require_one(plan, self.name, "tensor", "pipeline")
        require_no_shards(plan, self.name)
        stage, parameters = stage_time(workload, plan, machine), stage_parameters(workload, plan)
        data = gradient_seconds(parameters, plan, machine, backward_seconds=stage.backward)
        return replace(local_step(stage, parameters, plan, machine), data=data)


def gradient_seconds(parameters: float, plan: Plan, machine: Machine, *, backward_seconds: float) -> float:
    """All-reduce of a rank's gradients that the last micro-batch's backward pass does not hide.

    max(last bucket, all buckets - overlap x backward): the last bucket is full when nothing is left to compute.
    Source: Li et al. 2020, "PyTorch distributed: experiences on accelerating data parallel training".
    """
    if plan.data == 1:
        return 0.0
    n_bytes = WORD_BYTES * parameters
    buckets = max(1, math.ceil(n_bytes / plan.bucket_bytes))
    bucket_seconds = best_all_reduce(n_bytes / buckets, data_group(plan, machine)).seconds
    return exposed(buckets, bucket_seconds, backward_seconds * min(machine.constants.overlap_ratio, 1.0))


def exposed(buckets: int, bucket_seconds: float, hiding_seconds: float) -> float:
    """Return the exposed time of the buckets: at least the last one, whose gradients come at the very end."""
    return max(bucket_seconds, buckets * bucket_seconds - hiding_seconds * (buckets - 1) / buckets)
