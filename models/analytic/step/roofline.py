"""Computing time of one device."""

import math

from crosswind.data.devices.device import Device
from crosswind.models.analytic.checks import require_not_negative, require_positive


def roofline_seconds(flops: float, n_bytes: float, device: Device, *, efficiency: float = 1.0) -> float:
    """max(flops / (efficiency x peak), bytes / bandwidth) in seconds: the longer hides the other.

    Source: Williams, Waterman, Patterson 2009, "Roofline: an insightful visual performance model".
    """
    require_not_negative(flops=flops, n_bytes=n_bytes)
    require_positive(efficiency=efficiency)
    return max(flops / (efficiency * device.flops_16bit), n_bytes / device.memory_bytes_per_second)


def saturating_efficiency(work_flops: float, *, most: float, half_flops: float) -> float:
    """most / (1 + half / w): small kernels leave most of a device idle; at `half_flops` half of the most is reached.

    Equal to a start-up time of half / (most x peak) a kernel: Hockney's n_1/2 (Hockney and Jesshope 1981).
    """
    require_positive(work_flops=work_flops, most=most, half_flops=half_flops)
    return most / (1 + half_flops / work_flops)


def smooth_max(first: float, second: float) -> float:
    """sqrt(a^2 + b^2): the larger where they differ much, up to 1.41 times it where they are close.

    Two workers that feed each other (host and device) rarely overlap perfectly when neither is far ahead.
    """
    return math.hypot(first, second)
