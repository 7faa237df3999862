"""The parts of a step's time."""

from dataclasses import dataclass


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
