"""A byte-level transformer that learns the standard library's source: a step is mostly matrix products."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

CONTEXT = 64  # bytes
WIDTH = 128
LAYERS = 2
TEXT_BYTES = 2_000_000


class ByteTransformer(nn.Module):  # type: ignore[misc]  # torch is not followed by the type checker
    """A decoder of `LAYERS` blocks that predicts the next byte."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(256, WIDTH)
        self.position = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        block = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 256)
        # A plain attribute: DDP broadcasts registered buffers in every forward pass, one more barrier a step.
        self.mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return logits of the next byte, shape (batch, CONTEXT, 256)."""
        hidden = self.token(tokens) + self.position
        return self.head(self.blocks(hidden, mask=self.mask, is_causal=True))


def source_text() -> torch.Tensor:
    """Return bytes of the standard library's own source."""
    text = bytearray()
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        text += path.read_bytes()
        if len(text) >= TEXT_BYTES:
            break
    return torch.frombuffer(text, dtype=torch.uint8).long()


class ByteModelling:
    """Predicts the next byte of random windows."""

    name: ClassVar[str] = "byte-transformer"
    learning_rate: ClassVar[float] = 1e-3

    def __init__(self) -> None:
        self._text = source_text()

    def model(self) -> nn.Module:
        """Return the transformer, 0.5 million parameters."""
        return ByteTransformer()

    def batches(self, size: int, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield windows of the text, and the same one byte later."""
        random = torch.Generator().manual_seed(seed)
        while True:
            starts = torch.randint(len(self._text) - CONTEXT - 1, (size, 1), generator=random)
            window = self._text[starts + torch.arange(CONTEXT + 1)]
            yield window[:, :-1], window[:, 1:]

    def loss(self, model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of the next byte."""
        return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
