"""A convolutional classifier of generated patterns: much computation, a small gradient."""

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import nn

CLASSES = 10
SIDE = 32  # pixels
WIDTH = 16  # channels of the first layer
NOISE = 1.5  # standard deviation, where the patterns have 1
PATTERN_SEED = 7  # all ranks and runs learn the same patterns


class ImageClassification:
    """Every class is one smooth pattern; images are patterns under noise."""

    name: ClassVar[str] = "image-classifier"
    learning_rate: ClassVar[float] = 1e-3

    def __init__(self) -> None:
        random = torch.Generator().manual_seed(PATTERN_SEED)
        coarse = torch.randn(CLASSES, 3, 4, 4, generator=random)
        self._patterns = nn.functional.interpolate(coarse, size=SIDE, mode="bilinear", align_corners=False)

    def model(self) -> nn.Module:
        """Return three convolutions and a head, 24 thousand parameters; no batch norm: DDP broadcasts its buffers."""
        return nn.Sequential(
            *_block(3, WIDTH),
            *_block(WIDTH, 2 * WIDTH),
            *_block(2 * WIDTH, 4 * WIDTH),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4 * WIDTH, CLASSES),
        )

    def batches(self, size: int, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield images of shape (size, 3, SIDE, SIDE), and their classes."""
        random = torch.Generator().manual_seed(seed)
        while True:
            classes = torch.randint(CLASSES, (size,), generator=random)
            yield self._patterns[classes] + NOISE * torch.randn(size, 3, SIDE, SIDE, generator=random), classes

    def loss(self, model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of the class."""
        return nn.functional.cross_entropy(model(inputs), targets)


def _block(channels_in: int, channels_out: int) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(channels_in, channels_out, 3, padding=1)
    return convolution, nn.GroupNorm(4, channels_out), nn.ReLU(), nn.MaxPool2d(2)
