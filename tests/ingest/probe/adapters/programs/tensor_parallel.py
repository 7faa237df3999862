"""Tensor parallelism: two blocks split by columns, then rows; rank 1 is late between forward and backward."""

from collections.abc import Callable
from typing import Any

import torch
from rank import batches, main
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def train(run: Any, late: Callable[[], None]) -> nn.Module:
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),), mesh_dim_names=("tp",))
    blocks = [nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(2)]
    for block in blocks:
        parallelize_module(block, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    model = nn.Sequential(*blocks)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run.watch(model)
    same = torch.ones(8, 16)  # all ranks of the group work on one batch
    for _ in run.steps(batches()):
        optimizer.zero_grad()
        loss = model(same).square().mean()
        late()
        loss.backward()
        optimizer.step()
    return model


if __name__ == "__main__":
    main(train, late_rank=1)
