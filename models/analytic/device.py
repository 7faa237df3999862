"""The peak figures of one accelerator, or of one core of a processor."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """Peak figures of a maker's data sheet; `flops_16bit` is dense, without sparsity, fp32 where there is no 16 bit."""

    name: str
    flops_16bit: float  # floating-point operations per second
    flops_32bit: float  # per second, in the format that training uses by default (TF32 where the device has it)
    memory_bytes_per_second: float
    memory_bytes: float
    power_watts: float  # of the whole device at its top limit (TDP)
    year: int  # of its first shipping
