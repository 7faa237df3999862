"""DDP training whose rank 1 dies in the fifth step, the first time it is started."""

import os
import sys
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import crosswind

STEP_SECONDS = 0.5  # the launcher kills the other rank at once: of what was recorded the last second may be lost


def main() -> None:
    attempt, rank, size = (os.environ[name] for name in ("TORCHELASTIC_RESTART_COUNT", "RANK", "WORLD_SIZE"))
    meeting = f"file://{sys.argv[1]}.{attempt}"  # torchrun's own store still holds the addresses of the first attempt
    distributed.init_process_group("gloo", init_method=meeting, rank=int(rank), world_size=int(size))
    model = DistributedDataParallel(nn.Linear(8, 8))
    with crosswind.run(workload="crash-once") as run:
        run.watch(model)
        for number in run.steps(range(10)):
            if attempt == "0":
                time.sleep(STEP_SECONDS)
            model(torch.ones(4, 8)).sum().backward()
            if (attempt, rank, number) == ("0", "1", 5):
                os._exit(3)
    distributed.barrier()  # PyTorch 2.13 may abort a rank that leaves while another is still at work
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
