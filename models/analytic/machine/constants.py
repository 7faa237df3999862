"""The constants of the formulas that no data sheet gives, at the medians of their priors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Self

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.analytic.checks import require_positive


@dataclass(frozen=True)
class Constants:
    """Medians of log-normal priors; all positive. Ratios multiply figures of data sheets. Raises: InvalidInputError.

    The last three hold for programs of which only scale and times are known.
    """

    compute_efficiency: float = 0.5  # of the peak, by large kernels
    memory_efficiency: float = 0.5  # of the device's memory bandwidth
    kernel_start_seconds: float = 3e-6  # on the device, each
    kernel_launch_seconds: float = 5e-5  # on the host, small kernels included
    inside_latency_ratio: float = 1.0
    inside_efficiency: float = 0.7  # of links within a node, by collectives
    between_latency_ratio: float = 1.0
    between_efficiency: float = 0.6  # of a node's network connection, by collectives
    transfer_efficiency: float = 0.3  # of links within a node, by messages between pipeline stages
    overlap_ratio: float = 0.5  # share of the backward pass that hides the reduction of gradients; above 1 counts as 1
    host_efficiency: float = 0.6  # of the link to the host's memory, and of that memory
    step_overhead_seconds: float = 5e-3
    unit_seconds: float = 1.0  # of one unit of batch on one rank
    serial_ratio: float = 0.05  # of a unit, on any number of ranks
    tree_ratio: float = 0.01  # of a unit, a doubling of ranks

    def __post_init__(self) -> None:
        require_positive(**{name: getattr(self, name) for name in NAMES})

    @classmethod
    def of_logs(cls, logs: Floats | Sequence[float]) -> Self:
        """Make them of natural logarithms in the order of NAMES."""
        return cls(*(float(value) for value in np.exp(np.asarray(logs, np.float64))))

    def logs(self) -> Floats:
        """Natural logarithms in the order of NAMES, (n_constants,)."""
        return np.log(np.array([getattr(self, name) for name in NAMES], np.float64))


NAMES: tuple[str, ...] = tuple(field.name for field in fields(Constants))

# Standard deviations of the logarithms: 0.35 is a factor of 2 either way at 95 %, 1.2 a factor of 10.
SPREADS: Mapping[str, float] = MappingProxyType(
    {
        "compute_efficiency": 0.35,
        "memory_efficiency": 0.35,
        "kernel_start_seconds": 1.0,
        "kernel_launch_seconds": 1.2,
        "inside_latency_ratio": 1.0,
        "inside_efficiency": 0.5,
        "between_latency_ratio": 1.0,
        "between_efficiency": 0.7,
        "transfer_efficiency": 1.0,
        "overlap_ratio": 0.7,
        "host_efficiency": 0.5,
        "step_overhead_seconds": 1.2,
        "unit_seconds": 6.0,  # a unit may be anything
        "serial_ratio": 1.2,
        "tree_ratio": 1.2,
    }
)
