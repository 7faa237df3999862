"""Each rank of the training programs here: train without the probe, then with it, and compare."""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import distributed, nn

import crosswind

STEPS, LATE_SECONDS = 24, 0.1
Train = Callable[[Any, Callable[[], None]], nn.Module]


class Unwatched:
    """Stands where the run does, and sees nothing."""

    def steps(self, batches: Iterable[Any]) -> Iterable[Any]:
        return batches

    def watch(self, thing: Any) -> Any:
        return thing

    def record(self, **values: float) -> None:
        """Keeps nothing."""


class Late(nn.Module):
    """A layer that only takes time."""

    def __init__(self, sleep: Callable[[], None]) -> None:
        super().__init__()
        self.sleep = sleep

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        self.sleep()
        return hidden


def main(train: Train, late_rank: int, close: Callable[[], None] = lambda: None) -> None:
    """Says whether both trainings came to the same weights, and whether PyTorch is as it was."""
    torch.set_num_threads(1)
    if not distributed.is_initialized():
        distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    before = replaceable()
    unwatched = digest(train(Unwatched(), lambda: None))
    with crosswind.run(workload="adapters") as run:
        watched = digest(train(run, lambda: time.sleep(LATE_SECONDS) if rank == late_rank else None))
        was_watched = not is_as(before)
    report = {"rank": rank, "is_same": watched == unwatched, "was_watched": was_watched, "is_restored": is_as(before)}
    sys.stdout.write(json.dumps(report) + "\n")
    distributed.barrier()  # PyTorch 2.13 may abort a rank that leaves while another is still at work
    close()
    distributed.destroy_process_group()


def batches() -> Iterable[torch.Tensor]:
    """Batches of (8, 16), others on every rank."""
    random = torch.Generator().manual_seed(distributed.get_rank())
    return (torch.randn(8, 16, generator=random) for _ in range(STEPS))


def digest(model: nn.Module) -> str:
    """Of the weights that this rank holds."""
    sha = hashlib.sha256()
    for parameter in model.parameters():
        local = parameter.to_local() if hasattr(parameter, "to_local") else parameter
        sha.update(local.detach().numpy().tobytes())
    return sha.hexdigest()


def is_as(before: dict[str, Any]) -> bool:
    """Return whether all that the probe might replace is what it was."""
    now = replaceable()
    return all(now[name] is value for name, value in before.items())


def replaceable() -> dict[str, Any]:
    """All that the probe might replace."""
    from torch.distributed import _functional_collectives  # noqa: F401, PLC0415 - it makes the operators
    from torch.distributed.rpc import PyRRef, api  # noqa: PLC0415

    owners = (distributed.ProcessGroup, distributed.Work, torch._C.Future, PyRRef, api, torch.autograd)
    packets = vars(torch.ops._c10d_functional)
    attributes = {f"{owner.__name__}.{name}": value for owner in owners for name, value in vars(owner).items()}
    return attributes | {
        name: vars(packet).get("_op") for name, packet in packets.items() if hasattr(packet, "__dict__")
    }
