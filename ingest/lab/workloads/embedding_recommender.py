"""A recommender with a large embedding table: little computation, a large gradient to sum over the network."""

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import nn

ROWS = 16_000  # of the embedding table
WIDTH = 64
FIELDS = 8  # identifiers a sample
TASTE_SEED = 11  # all ranks and runs learn the same taste


class Recommendation:
    """Predicts whether a user likes an item, from identifiers of both: every identifier has a hidden value."""

    name: ClassVar[str] = "embedding-recommender"
    learning_rate: ClassVar[float] = 1e-2

    def __init__(self) -> None:
        self._taste = torch.randn(ROWS, generator=torch.Generator().manual_seed(TASTE_SEED))

    def model(self) -> nn.Module:
        """Return embedding and two layers, 1.1 million parameters; its gradient is dense, as DDP sums it."""
        embedding = nn.Embedding(ROWS, WIDTH)
        nn.init.normal_(embedding.weight, std=0.05)
        return nn.Sequential(
            embedding,
            nn.Flatten(),
            nn.Linear(FIELDS * WIDTH, 128),
            nn.ReLU(),
            nn.Linear(128, 1),
        )

    def batches(self, size: int, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield identifiers of shape (size, FIELDS), and 1 where they are liked."""
        random = torch.Generator().manual_seed(seed)
        while True:
            identifiers = (torch.rand(size, FIELDS, generator=random) ** 4 * ROWS).long()  # some are popular
            yield identifiers, (self._taste[identifiers].sum(1) > 0).float()

    def loss(self, model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of being liked."""
        return nn.functional.binary_cross_entropy_with_logits(model(inputs)[:, 0], targets)
