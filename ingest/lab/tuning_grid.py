"""Measurement of a whole tuning grid: every configuration of a small DDP training program, in random order.

    OMP_WAIT_POLICY=passive torchrun --standalone --nproc-per-node 2 -m crosswind.ingest.lab.tuning_grid OUT.parquet

One launch walks through the grid and wraps the model again for each configuration. The model is a masked-byte
language model of 0.5 million parameters, trained on the source text of Python's standard library; gradients travel
over gloo. The answer is the table behind `crosswind.data.samples.tuning_grid`.
"""

import itertools
import logging
import os
import random
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from crosswind.data.files import published
from crosswind.data.schema.trial import Configuration

LOG = logging.getLogger(__name__)

GRID: dict[str, tuple[int | float | str | bool, ...]] = {
    "micro_batch": (2, 4, 8, 16),  # samples a rank and micro-step
    "accumulation_steps": (1, 4),  # micro-steps between two all-reduces
    "bucket_cap_mb": (0.1, 0.5, 4.0),
    "threads": (1, 2),  # of each rank
    "gradient_as_bucket_view": (False, True),
    "precision": ("fp32", "bf16"),
}
PASSES = 3  # the repeats show the noise
SEED = 20_260
SEQUENCE_BYTES = 32
WIDTH = 128
LAYERS = 2
MASK = 0  # the mask: source text holds no NUL
HIDDEN_RATIO = 0.15
WARM_UP_STEPS = 2  # the first step allocates, the second uses the rebuilt buckets
TARGET_SECONDS = 0.7  # of measured steps a configuration
STEPS_MIN, STEPS_MAX = 3, 60


def configurations() -> list[Configuration]:
    """Return every configuration of the grid, in the order of its parameters' values."""
    return [dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values())]


def source_text() -> Tensor:
    """Return the bytes of Python's standard library, about 5 MB, shape (n_bytes,)."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in files)), dtype=torch.uint8)


def byte_model() -> nn.Sequential:
    """Return a transformer encoder that predicts masked bytes: (batch, length) int64 -> (batch, length, 256)."""
    layers = [
        nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=4 * WIDTH, dropout=0.0, batch_first=True)
        for _ in range(LAYERS)
    ]
    return nn.Sequential(nn.Embedding(256, WIDTH), *layers, nn.Linear(WIDTH, 256))


@dataclass
class Workload:
    """One configuration of the training program, ready to step."""

    configuration: Configuration
    text: Tensor
    generator: torch.Generator

    def __post_init__(self) -> None:
        torch.set_num_threads(int(self.configuration["threads"]))
        torch.manual_seed(SEED)
        self.model = DistributedDataParallel(
            byte_model(),
            bucket_cap_mb=float(self.configuration["bucket_cap_mb"]),
            gradient_as_bucket_view=bool(self.configuration["gradient_as_bucket_view"]),
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.half = self.configuration["precision"] == "bf16"
        self.accumulation_steps = int(self.configuration["accumulation_steps"])

    def step(self) -> float:
        """Return the seconds of one optimizer step on this rank."""
        start = time.perf_counter()
        for _ in range(self.accumulation_steps - 1):
            with self.model.no_sync():
                self._backward()
        self._backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return time.perf_counter() - start

    def _backward(self) -> None:
        clear = self._batch()
        hidden = torch.rand(clear.shape, generator=self.generator) < HIDDEN_RATIO
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.half):
            logits = self.model(clear.masked_fill(hidden, MASK))
        loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), clear.flatten())
        (loss / self.accumulation_steps).backward()

    def _batch(self) -> Tensor:
        shape = (int(self.configuration["micro_batch"]), 1)
        starts = torch.randint(len(self.text) - SEQUENCE_BYTES, shape, generator=self.generator)
        return self.text[starts + torch.arange(SEQUENCE_BYTES)].long()


def measure(configuration: Configuration, text: Tensor, generator: torch.Generator) -> dict[str, object]:
    """Return one row of the table: the configuration, its times, of the slowest rank, and the load of the machine."""
    load = os.getloadavg()[0]
    workload = Workload(configuration, text, generator)
    warm_up = [workload.step() for _ in range(WARM_UP_STEPS)]
    seconds = _slowest(torch.tensor(warm_up[-1:]))
    steps = int(min(max(TARGET_SECONDS / float(seconds[0]), STEPS_MIN), STEPS_MAX))
    step_seconds = _slowest(torch.tensor([workload.step() for _ in range(steps)], dtype=torch.float64))
    median = float(step_seconds.quantile(0.5))
    samples = int(configuration["micro_batch"]) * workload.accumulation_steps * dist.get_world_size()
    return {
        **configuration,
        "seconds_per_1000_samples": median / samples * 1000,
        "step_seconds": median,
        "step_seconds_p95": float(step_seconds.quantile(0.95)),
        "steps": steps,
        "load_at_start": load,
    }


def _slowest(seconds: Tensor) -> Tensor:
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    return seconds


def walk(text: Tensor, generator: torch.Generator) -> Iterator[dict[str, object]]:
    """Yield rows of every pass, each pass in an order of its own, the same on all ranks."""
    order = random.Random(SEED)  # noqa: S311  an order of measuring, no secret
    started = time.perf_counter()
    for repeat in range(PASSES):
        grid = configurations()
        order.shuffle(grid)
        for position, configuration in enumerate(grid):
            at_seconds = time.perf_counter() - started
            yield {"repeat": repeat, "at_seconds": at_seconds, **measure(configuration, text, generator)}
            if position % 32 == 31:
                LOG.info("pass %d: %d of %d", repeat, position + 1, len(grid))


def main() -> None:
    """Walk the grid, and let rank 0 write the table."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    [out] = map(Path, sys.argv[1:])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rows = list(walk(source_text(), torch.Generator().manual_seed(SEED + rank)))
    if rank == 0:
        with published(out, is_durable=False) as file:
            pd.DataFrame(rows).to_parquet(file, index=False, compression="zstd")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
