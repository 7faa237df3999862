"""DDP training in which one rank's backward pass is late by as many milliseconds as are asked for, since a step."""

import sys
import time
from itertools import count
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import crosswind


def main(late_rank: int, milliseconds: float, steps: int, since: int) -> None:
    distributed.init_process_group("gloo")
    sum_of_weights = train(late_rank, milliseconds, steps, since)
    if distributed.get_rank() == 0:
        print(sum_of_weights.hex())  # noqa: T201
    distributed.barrier()  # PyTorch 2.13 may abort a rank that leaves while another is still at work
    distributed.destroy_process_group()


def train(late_rank: int, milliseconds: float, steps: int, since: int) -> float:
    """The sum of the weights; the model is gone before its process group, else PyTorch 2.13 may wait for itself."""
    torch.manual_seed(0)
    layers = nn.Sequential(*(nn.Linear(64, 64) for _ in range(4)))
    model = DistributedDataParallel(layers, bucket_cap_mb=0.02)
    passes = count()
    if distributed.get_rank() == late_rank:
        layers[1].register_full_backward_hook(lambda *_: time.sleep(milliseconds / 1000 * (next(passes) >= since)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with crosswind.run(workload="late-backward") as run:
        run.watch(model)
        for _ in run.steps(range(steps)):
            optimizer.zero_grad()
            loss: Any = model(torch.ones(8, 64)).square().mean()
            loss.backward()
            optimizer.step()
            run.record(loss=loss)
    return sum(float(parameter.sum()) for parameter in model.parameters())


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 0)
