"""The protocol of a parallel strategy."""

from typing import ClassVar, Protocol

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine import Machine
from crosswind.models.analytic.plan import Plan
from crosswind.models.analytic.step_time import StepTime
from crosswind.models.analytic.workload import Workload


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
