"""One rank of two like trainings, of which one is traced in between; run by torchrun from `benchmarks.probe`.

Ranks 0 and 1 train, and ranks 2 and 3 on the same cores, in turns: A B B A. All are under the probe and wait to be
traced. The ratio of their processor times is taken before and after the second training has traced three steps.
"""

import itertools
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import crosswind
from crosswind.ingest.capture.plan import FOLDER, Plan
from crosswind.ingest.probe.run import RunProbe

TURNS = int(os.environ["PAIRS"]) * 8
FIRST = 2 * TURNS + 20  # captured step
REST = 2.0  # seconds, in which the trace is packed


def as_rank() -> None:
    rank = int(os.environ["RANK"])
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % 2 % (os.cpu_count() or 1)]})
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    groups = [distributed.new_group([0, 1]), distributed.new_group([2, 3])]
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER] = folder
        name = f"captured{rank // 2}"
        Plan("captured1", (rank,), FIRST, FIRST + 2, 1 << 30).write(Path(folder))
        with crosswind.run(workload="benchmark", run_id=name) as run:
            step = training(run, groups[rank // 2])
            seconds = {"before": [], "after": []}
            turns(step, rank, 5)
            seconds["before"] = turns(step, rank, TURNS)
            turns(step, rank, 15)
            time.sleep(REST)
            seconds["after"] = turns(step, rank, TURNS)
            captured = len(list(Path(folder).glob("*.json.gz")))
    every: list[tuple[dict[str, list[float]], int]] = [({}, 0)] * 4
    distributed.all_gather_object(every, (seconds, captured))
    if rank == 0:
        tell(every)
    distributed.barrier()  # a rank that leaves early may abort the others
    distributed.destroy_process_group()


def training(run: RunProbe, group: Any) -> Callable[[], None]:
    """Return a step of DDP, as in `benchmarks.probe_ranks`, under the probe."""
    torch.manual_seed(0)
    layers = nn.Sequential(*(nn.Linear(512, 512) for _ in range(8)))
    model = DistributedDataParallel(layers, bucket_cap_mb=2, process_group=group)
    run.watch(model)
    optimizer, batch = torch.optim.SGD(model.parameters(), lr=1e-3), torch.ones(96, 512)
    numbers = iter(run.steps(itertools.count()))

    def step() -> None:
        next(numbers)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step


def turns(step: Callable[[], None], rank: int, count: int) -> list[float]:
    """Train in turns with the other training. Return the processor seconds of a step in each."""
    used = []
    for _ in range(count):
        mine = 0.0
        for who in (0, 1, 1, 0):
            distributed.barrier()
            if who == rank // 2:
                begin = time.thread_time()
                step()
                mine += time.thread_time() - begin
        used.append(mine / 2)
    return used


def tell(every: list[tuple[dict[str, list[float]], int]]) -> None:
    changes = []
    for one, other in ((0, 2), (1, 3)):
        logs = {
            when: [math.log(b / a) for a, b in zip(every[one][0][when], every[other][0][when], strict=True)]
            for when in ("before", "after")
        }
        changes.append((logs["before"], logs["after"]))
    change = statistics.fmean(statistics.median(after) - statistics.median(before) for before, after in changes)
    error = math.sqrt(
        sum((1.2533 * statistics.stdev(logs)) ** 2 / len(logs) for pair in changes for logs in pair)
    ) / len(changes)
    step_ms = 1e3 * statistics.median(every[0][0]["before"])
    half, traces = 1.96 * error, [captured for _, captured in every]
    print(f"after_a_capture processor step {step_ms:.2f} ms {change:+.3%}, 95 % interval +-{half:.3%}; traces {traces}")
    print(json.dumps({"after_a_capture_slowdown": round(change, 5), "after_a_capture_half_interval": round(half, 5)}))


if __name__ == "__main__":
    as_rank()
