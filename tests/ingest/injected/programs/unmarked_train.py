"""Training without marks or an optimizer: it changes the weights by hand, and may reduce the gradients itself."""

import argparse
import os
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--slow-rank", type=int, default=-1)
parser.add_argument("--by-hand", action="store_true")
arguments = parser.parse_args()
distributed.init_process_group("gloo")
rank = distributed.get_rank()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 1))
replica = model if arguments.by_hand else DistributedDataParallel(model)
for _ in range(arguments.steps):
    loss = replica(torch.randn(32, 64)).square().mean()
    time.sleep(0.05 + 0.15 * (rank == arguments.slow_rank))
    loss.backward()
    for parameter in model.parameters():
        if arguments.by_hand:
            distributed.all_reduce(parameter.grad)
        with torch.no_grad():
            parameter -= 1e-3 * parameter.grad / distributed.get_world_size()
        parameter.grad = None
if "RANK" in os.environ:
    distributed.barrier()
distributed.destroy_process_group()
