"""The protocol of a parallel strategy, and the parts of a step's time."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.networks.workload import Workload
from crosswind.models.analytic.step.plan import Plan


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
        """The step."""
        return self.compute + self.communication + self.bubble + self.offload + self.update + self.overhead


class Strategy(Protocol):
    """Knows how long a step takes when the work is spread in one way."""

    name: ClassVar[str]

    def step(self, workload: Workload, plan: Plan, machine: Machine) -> StepTime:
        """The step's parts. Raises: InvalidInputError when the plan is of another strategy."""
        ...


def require_one(plan: Plan, strategy: str, *names: str) -> None:
    """Raises: InvalidInputError when one of these degrees is not 1."""
    for name in names:
        degree = getattr(plan, name)
        if degree != 1:
            raise InvalidInputError(f"{name} is {degree} with strategy {strategy}, expected 1")


def require_no_shards(plan: Plan, strategy: str) -> None:
    """Raises: InvalidInputError when the plan shards weights or offloads."""
    if plan.zero_stage:
        raise InvalidInputError(f"zero_stage is {plan.zero_stage} with strategy {strategy}, expected 0")
    if plan.offload != "none":
        raise InvalidInputError(f"offload is {plan.offload} with strategy {strategy}, expected none")
