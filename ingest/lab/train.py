"""A small real training program: a byte-level transformer learns the standard library's source, by DDP over gloo.

Run by torchrun: `torchrun --nproc-per-node 2 -m crosswind.ingest.lab.train --steps 60`, or with `--ranks 2` in forks
that share one import of PyTorch, which starts in half of the time. Its options are those that people tune;
`--fault` disturbs one rank in a known way.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import crosswind
from crosswind.ingest.lab.faults import Disturbance, Fault, pin_to_core
from crosswind.ingest.lab.forks import in_forks
from crosswind.ingest.lab.workloads.byte_transformer import CONTEXT, ByteTransformer, source_text


def batches(arguments: argparse.Namespace, rank: int, disturbance: Disturbance) -> Iterator[torch.Tensor]:
    """Yield random windows of the text, shape (batch, CONTEXT + 1)."""
    text, random = source_text(), torch.Generator().manual_seed(1000 + rank)
    for _ in range(arguments.steps):
        disturbance.in_loader()
        starts = torch.randint(len(text) - CONTEXT - 1, (arguments.batch, 1), generator=random)
        yield text[starts + torch.arange(CONTEXT + 1)]


def train(arguments: argparse.Namespace) -> float:
    """Train for so many steps. Return the last loss."""
    rank = distributed.get_rank()
    disturbance = Disturbance(arguments.fault, rank)
    model = DistributedDataParallel(
        ByteTransformer(), bucket_cap_mb=arguments.bucket_mb, gradient_as_bucket_view=arguments.bucket_view
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.zeros(())
    config = {name: getattr(arguments, name) for name in ("batch", "bucket_mb", "bucket_view", "threads")}
    with disturbance.around_loop(), crosswind.run(workload="byte-transformer", config=config) as run:
        run.watch(model)
        for batch in run.steps(batches(arguments, rank, disturbance)):
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            disturbance.in_step()
            loss.backward()
            optimizer.step()
    return float(loss.item())


def loss_of(model: Any, batch: torch.Tensor) -> torch.Tensor:
    """Return the cross-entropy of the next byte."""
    return nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


def main() -> None:
    """Read the command line and train, as one rank or as the parent of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, help="fork this many ranks (default: be the rank that torchrun made this)")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--bucket-mb", type=float, default=1.0)
    parser.add_argument("--bucket-view", type=json.loads, default=False, metavar="true|false")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--fault", type=Fault.parse)
    arguments = parser.parse_args()
    work = partial(train_as_rank, arguments)
    sys.exit(in_forks(arguments.ranks, work) if arguments.ranks else work())


def train_as_rank(arguments: argparse.Namespace) -> None:
    """Join the other ranks, train with them, and print the loss."""
    pin_to_core(int(os.environ.get("LOCAL_RANK", "0")), threads=arguments.threads)
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    distributed.init_process_group("gloo")
    loss = train(arguments)
    if distributed.get_rank() == 0:
        print(f"loss {loss:.3f} after {arguments.steps} steps", flush=True)  # noqa: T201 - a program, not the package
    distributed.barrier()  # PyTorch 2.13 may abort a rank that leaves while another is still at work
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
