"""One rank that stays: trains each configuration that it reads, and prints what a sample took.

    python -m benchmarks.tuning_live.rank MEETING_FILE RANK SECONDS

A line of standard input is a configuration as JSON, for both ranks the same; rank 0 answers with a line. Every
configuration gets a model, an optimizer and a loader of its own. Reading a sample waits, as for storage elsewhere: this
machine has its files in memory, and loader workers would have nothing to hide.
"""

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from benchmarks.tuning_live.ranks import RANKS
from crosswind.data.schema.trial import Configuration
from crosswind.ingest.lab.train import loss_of
from crosswind.ingest.lab.workloads.byte_transformer import CONTEXT, ByteTransformer, source_text

TIMEOUT = timedelta(seconds=60)  # a rank that waits longer has lost the other
READ_SECONDS = 0.0005  # a sample; reads of one loader process follow one another
WARM_UP_STEPS = 6  # allocate, rebuild the buckets, and use up what two workers loaded ahead
STEPS_MIN, STEPS_MAX = 5, 400
SEED = 20_261


class Windows:
    """A text cut into windows of CONTEXT + 1 bytes, each read with a wait."""

    def __init__(self, text: torch.Tensor) -> None:
        self._text = text

    def __len__(self) -> int:
        return (len(self._text) - 1) // CONTEXT

    def __getitem__(self, place: int) -> torch.Tensor:
        time.sleep(READ_SECONDS)
        return self._text[place * CONTEXT : (place + 1) * CONTEXT + 1]


class Training:
    """One configuration, ready to step."""

    def __init__(self, configuration: Configuration, windows: Windows, rank: int) -> None:
        torch.set_num_threads(int(configuration["threads"]))
        torch.manual_seed(SEED)
        self._batches = iter(
            DataLoader(
                windows,
                batch_size=int(configuration["batch"]),
                shuffle=True,
                drop_last=True,
                num_workers=int(configuration["workers"]),
                generator=torch.Generator().manual_seed(SEED + rank),
            )
        )
        self._model = DistributedDataParallel(ByteTransformer(), bucket_cap_mb=float(configuration["bucket_mb"]))
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-3)

    def step(self) -> float:
        """Seconds of one step on this rank: load, forward, backward with its reduction, update."""
        start = time.perf_counter()
        loss = loss_of(self._model, next(self._batches))
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return time.perf_counter() - start


def seconds_per_sample(configuration: Configuration, windows: Windows, seconds: float) -> float:
    """The median step's time, that of its slowest rank, over the samples of all ranks."""
    training = Training(configuration, windows, distributed.get_rank())
    warm_up = _slowest([training.step() for _ in range(WARM_UP_STEPS)])
    steps = int(min(max(seconds / float(warm_up[WARM_UP_STEPS // 2 :].median()), STEPS_MIN), STEPS_MAX))
    step_seconds = _slowest([training.step() for _ in range(steps)])
    return float(step_seconds.quantile(0.5)) / (int(configuration["batch"]) * RANKS)


def _slowest(seconds: list[float]) -> torch.Tensor:
    times = torch.tensor(seconds, dtype=torch.float64)
    distributed.all_reduce(times, op=distributed.ReduceOp.MAX)
    return times


def main() -> None:
    """Trains what it reads until nothing more comes."""
    meeting, rank, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    distributed.init_process_group("gloo", init_method=meeting.as_uri(), rank=rank, world_size=RANKS, timeout=TIMEOUT)
    windows = Windows(source_text())
    for line in sys.stdin:
        measured = seconds_per_sample(json.loads(line), windows, seconds)
        if rank == 0:
            os.write(answers, json.dumps(measured).encode() + b"\n")
    distributed.barrier()  # PyTorch 2.13 may abort a rank that leaves while another is still at work
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
