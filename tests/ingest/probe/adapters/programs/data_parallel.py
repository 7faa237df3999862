"""DistributedDataParallel; rank 1 is late between forward and backward."""

from collections.abc import Callable
from typing import Any

import torch
from rank import batches, main
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(run: Any, late: Callable[[], None]) -> nn.Module:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model)
    for batch in run.steps(batches()):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        late()
        loss.backward()
        optimizer.step()
    return model


if __name__ == "__main__":
    main(train, late_rank=1)
