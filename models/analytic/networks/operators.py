"""Networks other than transformers: their operators counted once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.checks import require_count
from crosswind.models.analytic.networks.workload import BACKWARD_OVER_FORWARD, Workload

WORD_BYTES = 2
PASSES = 3  # forward, gradient of the inputs, gradient of the weights


class Operator(Protocol):
    """One operator of a network, as one sample passes it."""

    @property
    def flops(self) -> float:
        """Operations of the forward pass; a multiplication with its addition is two."""
        ...

    @property
    def parameters(self) -> float:
        """The number of weights."""
        ...

    @property
    def output_elements(self) -> float:
        """The number of outputs of a sample."""
        ...


@dataclass(frozen=True)
class Dense:
    """A matrix product with bias."""

    inputs: int
    outputs: int

    def __post_init__(self) -> None:
        require_count(inputs=self.inputs, outputs=self.outputs)

    @property
    def flops(self) -> float:
        """2 x inputs x outputs."""
        return 2.0 * self.inputs * self.outputs

    @property
    def parameters(self) -> float:
        """(inputs + 1) x outputs."""
        return (self.inputs + 1.0) * self.outputs

    @property
    def output_elements(self) -> float:
        """One output a column."""
        return float(self.outputs)


@dataclass(frozen=True)
class Convolution:
    """A two-dimensional convolution with square kernel and bias; `height` and `width` are those of its output."""

    inputs: int  # channels
    outputs: int  # channels
    kernel: int
    height: int
    width: int
    groups: int = 1

    def __post_init__(self) -> None:
        require_count(
            inputs=self.inputs,
            outputs=self.outputs,
            kernel=self.kernel,
            height=self.height,
            width=self.width,
            groups=self.groups,
        )
        if self.inputs % self.groups or self.outputs % self.groups:
            raise InvalidInputError(
                f"groups is {self.groups}, expected to divide inputs = {self.inputs} and outputs = {self.outputs}"
            )

    @property
    def flops(self) -> float:
        """2 k^2 C_in/groups C_out H W."""
        return 2.0 * self.kernel**2 * self.inputs / self.groups * self.output_elements

    @property
    def parameters(self) -> float:
        """(k^2 C_in/groups + 1) C_out."""
        return (self.kernel**2 * self.inputs / self.groups + 1) * self.outputs

    @property
    def output_elements(self) -> float:
        """C_out H W."""
        return float(self.outputs * self.height * self.width)


def network(operators: Sequence[Operator]) -> Workload:
    """A workload of as many layers as operators, each the mean of all. Raises: InvalidInputError without operators.

    The output of every operator is kept in 16 bits for the backward pass.
    """
    if not operators:
        raise InvalidInputError("operators are none, expected at least one")
    n = len(operators)
    elements = sum(operator.output_elements for operator in operators) / n
    return Workload(
        layers=n,
        layer_flops=(1 + BACKWARD_OVER_FORWARD) * sum(operator.flops for operator in operators) / n,
        layer_parameters=sum(operator.parameters for operator in operators) / n,
        layer_sharded_bytes=WORD_BYTES * elements,
        boundary_bytes=WORD_BYTES * elements,
        kernels=PASSES,
    )
