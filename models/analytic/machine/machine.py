"""Machines: devices, and the links that connect them."""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from crosswind.data.devices.device import Device
from crosswind.models.analytic.checks import require_positive
from crosswind.models.analytic.machine.constants import Constants
from crosswind.models.analytic.machine.links import Link

INSIDE_ALPHA_SECONDS = 1e-5  # one hop of a collective between devices of a node, started by the host
BETWEEN_ALPHA_SECONDS = 2e-5
# Where nothing is known of the links. In one direction a device sends 15 % of its memory bandwidth to its neighbours:
# V100 135 (data sheet: 150), A100 306 (300), H100 503 (450) GB/s; a twelfth of that leaves the node: A100 25 (25).
INSIDE_OVER_MEMORY = 0.15
BETWEEN_OVER_INSIDE = 1 / 12
HOST_LINK = Link(1e-5, 25e9)  # PCI Express 4.0 x16 in practice
HOST_MEMORY_BYTES_PER_SECOND = 25e9  # one rank's share of two sockets with 200 GB/s each


@dataclass(frozen=True)
class Machine:
    """A cluster of equal nodes; links by their data sheets, `constants` for the part of them that is reached."""

    device: Device
    inside: Link  # of one device to the others of its node, one direction
    between: Link  # the whole node's connection to the network, one direction
    host: Link = HOST_LINK  # of one device
    host_memory_bytes_per_second: float = HOST_MEMORY_BYTES_PER_SECOND  # of one rank
    constants: Constants = field(default_factory=Constants)

    def __post_init__(self) -> None:
        require_positive(host_memory_bytes_per_second=self.host_memory_bytes_per_second)

    @cached_property
    def inside_link(self) -> Link:
        """The link that collectives reach within a node."""
        constants = self.constants
        return _reached(self.inside, constants.inside_latency_ratio, constants.inside_efficiency)

    @cached_property
    def between_link(self) -> Link:
        """The link that collectives reach out of a node."""
        constants = self.constants
        return _reached(self.between, constants.between_latency_ratio, constants.between_efficiency)

    @cached_property
    def host_link(self) -> Link:
        """The link that copies between device and host reach."""
        return _reached(self.host, 1.0, self.constants.host_efficiency)

    @cached_property
    def memory_bytes_per_second(self) -> float:
        """The bandwidth that kernels reach of the device's memory."""
        return self.device.memory_bytes_per_second * self.constants.memory_efficiency


@lru_cache(maxsize=256)  # thousands of configurations share few machines
def machine_of(
    device: Device,
    *,
    ranks_a_node: int,
    inside_bytes_per_second: float | None = None,
    between_bytes_per_second: float | None = None,
    constants: Constants | None = None,
) -> Machine:
    """A machine of such devices; links of which nothing is known follow from the device. Raises: InvalidInputError."""
    inside = inside_bytes_per_second or INSIDE_OVER_MEMORY * device.memory_bytes_per_second
    between = between_bytes_per_second or BETWEEN_OVER_INSIDE * inside * ranks_a_node
    return Machine(
        device,
        inside=Link(INSIDE_ALPHA_SECONDS, inside),
        between=Link(BETWEEN_ALPHA_SECONDS, between),
        constants=constants or Constants(),
    )


def _reached(link: Link, latency_ratio: float, efficiency: float) -> Link:
    return Link(link.alpha_seconds * latency_ratio, link.bytes_per_second * efficiency)
