"""One micro-batch on one stage of the pipeline."""

import math
from dataclasses import dataclass

from crosswind.models.analytic.machine.collectives import best_all_reduce
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import BACKWARD_OVER_FORWARD, TRAFFIC_OVER_STORED, Workload
from crosswind.models.analytic.step.layout import tensor_group
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.roofline import roofline_seconds, saturating_efficiency, smooth_max

WORD_BYTES = 2
WEIGHT_PASSES = 3  # weights are read forward and backward, their gradients written
UPDATE_BYTES = 28  # Adam in mixed precision: gradient, master weight and two moments read (14), all but the first
# written, and the 16-bit weight (14); a weight


@dataclass(frozen=True)
class StageTime:
    """Seconds of a micro-batch, forward and backward; `head` is added on the last stage alone."""

    layers: int
    layer_compute: float
    layer_tensor: float
    head: float

    @property
    def compute(self) -> float:
        """Seconds of the stage's layers."""
        return self.layers * self.layer_compute

    @property
    def tensor(self) -> float:
        """All-reduces of the stage's layers."""
        return self.layers * self.layer_tensor

    @property
    def backward(self) -> float:
        """Seconds of the backward pass of the stage's layers, computation alone."""
        return self.compute * BACKWARD_OVER_FORWARD / (1 + BACKWARD_OVER_FORWARD)


def stage_time(workload: Workload, plan: Plan, machine: Machine) -> StageTime:
    """Return the time of one micro-batch on a stage; where layers do not divide, on the longest stage."""
    return StageTime(
        layers=math.ceil(workload.layers / plan.pipeline),
        layer_compute=_layer_compute(workload, plan, machine),
        layer_tensor=_layer_tensor(workload, plan, machine),
        head=_head(workload, plan, machine),
    )


def stage_parameters(workload: Workload, plan: Plan) -> float:
    """Weights on a rank of the last stage, before data parallelism shards them."""
    layers = math.ceil(workload.layers / plan.pipeline)
    return (layers * workload.layer_parameters + workload.head_parameters) / plan.tensor


def stored_bytes(workload: Workload, plan: Plan) -> float:
    """Activations that a layer keeps of one micro-batch on one rank."""
    replicated = workload.layer_replicated_bytes / (plan.tensor if plan.sequence_parallel else 1)
    return plan.micro_batch * (replicated + workload.layer_sharded_bytes / plan.tensor)


def update_seconds(parameters: float, machine: Machine) -> float:
    """Seconds of the optimizer on a number of weights: bound by memory."""
    return parameters * UPDATE_BYTES / machine.memory_bytes_per_second


def _layer_compute(workload: Workload, plan: Plan, machine: Machine) -> float:
    """Seconds of matrix products by the roofline, then of moving activations, while the host launches all kernels."""
    constants = machine.constants
    flops = plan.micro_batch * workload.layer_flops / plan.tensor
    efficiency = saturating_efficiency(
        flops / workload.kernels,
        most=constants.compute_efficiency,
        half_flops=constants.compute_efficiency * machine.device.flops_16bit * constants.kernel_start_seconds,
    )
    weights = WEIGHT_PASSES * WORD_BYTES * workload.layer_parameters / plan.tensor
    products = roofline_seconds(flops, weights / constants.memory_efficiency, machine.device, efficiency=efficiency)
    moves = TRAFFIC_OVER_STORED * stored_bytes(workload, plan) / machine.memory_bytes_per_second
    return smooth_max(products + moves, workload.kernels * constants.kernel_launch_seconds)


def _layer_tensor(workload: Workload, plan: Plan, machine: Machine) -> float:
    if plan.tensor == 1:
        return 0.0
    n_bytes = plan.micro_batch * workload.boundary_bytes
    return workload.tensor_all_reduces * best_all_reduce(n_bytes, tensor_group(plan, machine)).seconds


def _head(workload: Workload, plan: Plan, machine: Machine) -> float:
    flops = plan.micro_batch * workload.head_flops / plan.tensor
    n_bytes = plan.micro_batch * workload.head_bytes / plan.tensor
    efficiency = machine.constants.compute_efficiency
    return flops / (efficiency * machine.device.flops_16bit) + n_bytes / machine.memory_bytes_per_second
