"""A pipeline of two stages, by GPipe or 1F1B, four micro-batches; stage 0 is late with its first forward pass."""

import sys
from collections.abc import Callable
from typing import Any

import torch
from rank import Late, batches, main
from torch import distributed, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
MICRO_BATCHES = 4


def train(run: Any, late: Callable[[], None]) -> nn.Module:
    torch.manual_seed(0)
    first_of_step: list[Callable[[], None]] = []
    at_first = Late(lambda: first_of_step.pop()() if first_of_step else None)
    parts = [nn.Sequential(at_first, nn.Linear(16, 16), nn.GELU()), nn.Sequential(nn.Linear(16, 1))]
    rank = distributed.get_rank()
    stage = PipelineStage(parts[rank], rank, 2, torch.device("cpu"))
    schedule = SCHEDULES[sys.argv[1]](stage, MICRO_BATCHES, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.AdamW(parts[rank].parameters(), lr=0.01)
    run.watch(schedule)
    for batch in run.steps(batches()):
        optimizer.zero_grad()
        first_of_step[:] = [late]
        if rank == 0:
            schedule.step(batch)
        else:
            schedule.step(target=torch.ones(8, 1))
        optimizer.step()
    return parts[rank]


if __name__ == "__main__":
    main(train, late_rank=0)
