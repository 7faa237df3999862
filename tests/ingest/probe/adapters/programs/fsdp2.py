"""FSDP2: two blocks, each a group of its own, and the rest; rank 1 is late in the second block's forward pass."""

from collections.abc import Callable
from typing import Any

import torch
from rank import Late, batches, main
from torch import nn
from torch.distributed.fsdp import fully_shard


def train(run: Any, late: Callable[[], None]) -> nn.Module:
    torch.manual_seed(0)
    first, second = (nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(2))
    model = nn.Sequential(first, Late(late), second, nn.Linear(16, 1))
    for block in (first, second, model):
        fully_shard(block)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model)
    for batch in run.steps(batches()):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return model


if __name__ == "__main__":
    main(train, late_rank=1)
