"""FSDP2 over `dp` and tensor parallelism over `tp`, 2 by 2 ranks; rank 3 is late before its forward pass."""

from collections.abc import Callable
from typing import Any

import torch
from rank import batches, main
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def train(run: Any, late: Callable[[], None]) -> nn.Module:
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model)
    random = torch.Generator().manual_seed(mesh.get_local_rank("dp"))
    for _ in run.steps(batches()):
        batch = torch.randn(8, 16, generator=random)
        optimizer.zero_grad()
        late()
        model(batch).square().mean().backward()
        optimizer.step()
    return model


if __name__ == "__main__":
    main(train, late_rank=3)
