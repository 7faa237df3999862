"""The common parts of the lab's training programs."""

from collections.abc import Iterator
from typing import ClassVar, Protocol

import torch
from torch import nn


class Workload(Protocol):
    """A model, endless batches to train it on, and the loss of a batch."""

    name: ClassVar[str]
    learning_rate: ClassVar[float]

    def model(self) -> nn.Module:
        """Return a fresh model, the same on every rank that set the same seed."""
        ...

    def batches(self, size: int, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield inputs and targets without end, `size` samples each."""
        ...

    def loss(self, model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of a batch."""
        ...
