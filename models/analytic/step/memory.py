"""The bytes that must fit into a device's memory."""

import math
from dataclasses import dataclass

from crosswind.data.devices.device import Device
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import stage_parameters, stored_bytes

# Adam in mixed precision, a weight: 2 weight + 2 gradient + 12 (32-bit weight, momentum, variance).
PARAMETER_BYTES = 2
GRADIENT_BYTES = 2
OPTIMIZER_BYTES = 12
USABLE_RATIO = 0.92  # the rest holds the context, libraries and fragments


@dataclass(frozen=True)
class MemoryUse:
    """Bytes on the fullest rank."""

    parameters: float
    gradients: float
    optimizer: float
    activations: float

    @property
    def total(self) -> float:
        """Bytes of all parts."""
        return self.parameters + self.gradients + self.optimizer + self.activations


def memory_use(workload: Workload, plan: Plan) -> MemoryUse:
    """Bytes a rank needs: 16 a weight, sharded as the ZeRO stage says, and activations of micro-batches in flight.

    With `offload="optimizer"` gradients and optimizer live on the host (Ren et al. 2021); `offload="activations"` is
    not subtracted here, for how much is swapped depends on the device. Sources: Rajbhandari et al. 2020, "ZeRO: memory
    optimizations toward training trillion parameter models", section 5; Korthikanti et al. 2022 (activations).
    """
    weights = stage_parameters(workload, plan)
    on_host = plan.offload == "optimizer"
    return MemoryUse(
        parameters=PARAMETER_BYTES * weights / _shards(plan, from_stage=3),
        gradients=0.0 if on_host else GRADIENT_BYTES * weights / _shards(plan, from_stage=2),
        optimizer=0.0 if on_host else OPTIMIZER_BYTES * weights / _shards(plan, from_stage=1),
        activations=activation_bytes(workload, plan),
    )


def activation_bytes(workload: Workload, plan: Plan) -> float:
    """Bytes kept for the backward pass on the first stage: of all layers, or by recomputation inputs and one layer."""
    layers = math.ceil(workload.layers / plan.pipeline)
    full = stored_bytes(workload, plan)
    if not plan.recompute:
        return in_flight(plan) * layers * full
    kept = plan.micro_batch * workload.boundary_bytes / (plan.tensor if plan.sequence_parallel else 1)
    return in_flight(plan) * layers * kept + full


def in_flight(plan: Plan) -> float:
    """Micro-batches whose activations the first stage holds at once: all for GPipe, as many as stages for 1F1B.

    Interleaved: p + (p - 1)/v, in whole stages. Source: Korthikanti et al. 2022, section 4.2.3.
    """
    if plan.schedule == "gpipe":
        return float(plan.micro_batches)
    stages = float(plan.pipeline)
    if plan.schedule == "interleaved":
        stages += (plan.pipeline - 1) / plan.interleave
    return min(float(plan.micro_batches), stages)


def fits(workload: Workload, plan: Plan, device: Device) -> bool:
    """Return whether the fullest rank has room; activations that are swapped need room for two layers."""
    use = memory_use(workload, plan)
    needed = use.total
    if plan.offload == "activations":
        needed += min(use.activations, 2 * stored_bytes(workload, plan)) - use.activations
    return needed <= USABLE_RATIO * device.memory_bytes


def _shards(plan: Plan, *, from_stage: int) -> int:
    return plan.data if plan.zero_stage >= from_stage else 1
