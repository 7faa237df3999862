"""Peak figures of an accelerator or a processor."""

import math
from dataclasses import dataclass

UNPUBLISHED = math.nan  # also of a format that the device does not have


@dataclass(frozen=True)
class Device:
    """Peak figures of a maker's data sheet. Rates are dense, without sparsity, in operations per second.

    `flops_16bit` is that of fp32 where there is no 16 bit; `flops_32bit` that of the format which training in 32 bit
    uses by default: TF32 where the device has it, bf16 passes on a TPU. `flops_8bit` and `flops_4bit` are of
    floating-point formats (FP8, FP4), NaN without them. A figure that the maker does not publish is NaN. A processor is
    one socket, its memory the most that the maker supports.
    """

    name: str
    flops_16bit: float
    flops_32bit: float
    memory_bytes_per_second: float
    memory_bytes: float
    power_watts: float  # of the whole device at its top limit (TDP)
    year: int  # of its first shipping
    flops_8bit: float = UNPUBLISHED
    flops_4bit: float = UNPUBLISHED
    link_bytes_per_second: float = UNPUBLISHED  # to others of its node, one direction: half of what a sheet adds up
    source: str = ""  # of these figures

    @property
    def fastest_8bit(self) -> float:
        """Operations per second in 8 bit, in 16 bit where it has no 8 bit."""
        return self.flops_16bit if math.isnan(self.flops_8bit) else self.flops_8bit

    @property
    def fastest_4bit(self) -> float:
        """Operations per second in 4 bit, in the next wider format where it has no 4 bit."""
        return self.fastest_8bit if math.isnan(self.flops_4bit) else self.flops_4bit
