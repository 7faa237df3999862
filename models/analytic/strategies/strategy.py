"""The protocol of a parallel strategy, and the parts of a step's time."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.plan import Plan
from crosswind.models.analytic.step.stage import StageTime, update_seconds


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Parts of a step on the slowest rank, in seconds; communication is what computation does not hide."""

    compute: float
    tensor: float = 0.0  # all-reduces within layers
    data: float = 0.0  # gradients, sharded weights
    transfer: float = 0.0  # activations between pipeline stages
    bubble: float = 0.0  # waiting for other stages
    offload: float = 0.0  # copies to and from the host, and what the host computes
    update: float = 0.0  # the optimizer
    overhead: float = 0.0

    @property
    def communication(self) -> float:
        """Exposed communication of all kinds."""
        return self.tensor + self.data + self.transfer

    @property
    def total(self) -> float:
        """Seconds of the step."""
        return self.compute + self.communication + self.bubble + self.offload + self.update + self.overhead


class Strategy(Protocol):
    """Computes the time of a step under one parallel strategy."""

    name: ClassVar[str]

    def step(self, workload: Workload, plan: Plan, machine: Machine) -> StepTime:
        """The parts of the step. Raises: InvalidInputError when the plan is of another strategy."""
        ...


def local_step(stage: StageTime, parameters: float, plan: Plan, machine: Machine) -> StepTime:
    """Return a step of ranks with `parameters` weights each, without communication outside tensor groups."""
    shards = plan.data if plan.zero_stage else 1
    return StepTime(
        compute=plan.micro_batches * (stage.compute + stage.head),
        tensor=plan.micro_batches * stage.tensor,
        update=update_seconds(parameters / shards, machine),
        overhead=machine.constants.step_overhead_seconds,
    )


def require_one(plan: Plan, strategy: str, *names: str) -> None:
    """Refuse degrees other than 1. Raises: InvalidInputError."""
    for name in names:
        degree = getattr(plan, name)
        if degree != 1:
            raise InvalidInputError(f"{name} is {degree} with strategy {strategy}, expected 1")


def require_no_shards(plan: Plan, strategy: str) -> None:
    """Refuse a plan that shards weights or offloads. Raises: InvalidInputError."""
    if plan.zero_stage:
        raise InvalidInputError(f"zero_stage is {plan.zero_stage} with strategy {strategy}, expected 0")
    if plan.offload != "none":
        raise InvalidInputError(f"offload is {plan.offload} with strategy {strategy}, expected none")
