"""Offloading to the host's memory: of the optimizer, or of activations that do not fit into a device."""

from dataclasses import dataclass, replace
from typing import ClassVar

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import BACKWARD_OVER_FORWARD, Workload
from crosswind.models.analytic.step.memory import USABLE_RATIO, memory_use
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import UPDATE_BYTES, WORD_BYTES, stage_parameters, stage_time, stored_bytes
from crosswind.models.analytic.strategies.hybrid import Hybrid
from crosswind.models.analytic.strategies.strategy import StepTime


@dataclass(frozen=True)
class OffloadStrategy:
    """Any synchronous plan with `offload="optimizer"` (ZeRO-Offload) or `"activations"` (out-of-core, KARMA)."""

    name: ClassVar[str] = "offload"

    def step(self, workload: Workload, plan: Plan, machine: Machine) -> StepTime:
        """The parts of the step. Raises: InvalidInputError."""
        if plan.offload == "none":
            raise InvalidInputError("offload is none with strategy offload, expected optimizer or activations")
        inside = Hybrid().step(workload, replace(plan, offload="none"), machine)
        if plan.offload == "optimizer":
            return replace(inside, update=0.0, offload=optimizer_seconds(workload, plan, machine))
        return replace(inside, offload=swap_seconds(workload, plan, machine))


def optimizer_seconds(workload: Workload, plan: Plan, machine: Machine) -> float:
    """Gradients to the host as the backward pass yields them, Adam there, weights back.

    Source: Ren et al. 2021, "ZeRO-Offload: democratizing billion-scale model training"; each data rank takes its part.
    """
    parameters = stage_parameters(workload, plan) / plan.data
    copy = machine.host_link.seconds(WORD_BYTES * parameters)
    hidden = min(machine.constants.overlap_ratio, 1.0) * stage_time(workload, plan, machine).backward
    bandwidth = machine.host_memory_bytes_per_second * machine.constants.host_efficiency
    return max(copy - hidden, 0.0) + UPDATE_BYTES * parameters / bandwidth + copy


def swapped_ratio(workload: Workload, plan: Plan, machine: Machine) -> float:
    """Share of the activations that do not fit into the device, 0 to 1."""
    use = memory_use(workload, plan)
    lacking = use.total - USABLE_RATIO * machine.device.memory_bytes
    return min(max(lacking, 0.0) / use.activations, 1.0)


def swap_seconds(workload: Workload, plan: Plan, machine: Machine) -> float:
    """Return the added seconds of swapping: per layer max(compute, bytes / link) - compute, out forward, in backward.

    The last layer out and the first one back cannot hide. Source: Wahib et al. 2020, "Scaling distributed deep
    learning workloads beyond the memory capacity with KARMA", as per-layer maxima.
    """
    ratio = swapped_ratio(workload, plan, machine)
    if ratio == 0:
        return 0.0
    stage = stage_time(workload, plan, machine)
    copy = machine.host_link.seconds(stored_bytes(workload, plan))
    forward = stage.layer_compute / (1 + BACKWARD_OVER_FORWARD)
    waits = max(copy - forward, 0.0) + max(copy - BACKWARD_OVER_FORWARD * forward, 0.0)
    return plan.micro_batches * (ratio * stage.layers * waits + 2 * min(copy, forward))
