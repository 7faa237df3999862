"""Earlier measurements, as a comparison needs them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Earlier:
    """The newest values of one measure on one node, device or pair, newest first; `at_ns` tell the checks."""

    measure: str
    method: str
    hardware: str
    node: str
    device: str  # empty of the network
    peer: str  # empty without one
    at_ns: tuple[int, ...]
    values: tuple[float, ...]
