"""A parameter server on rank 0 and a worker on each of two ranks, synchronous or asynchronous; worker 1 is late.

The server keeps a log of every update, in the order it made them: which worker's, and how stale by its own count.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from rank import STEPS, batches, main
from torch import distributed, nn
from torch.distributed import rpc

from crosswind.ingest.probe.adapters.parameter_server import Staleness


class Server:
    """The parameters, and how many updates they have had."""

    def __init__(self, workers: int) -> None:
        self.model = fresh_model()
        self.workers, self.version = workers, 0
        self.lock = threading.Lock()
        self.waiting: list[tuple[list[torch.Tensor], torch.futures.Future[Any]]] = []
        self.log: list[tuple[int, int, int]] = []

    def fetch(self) -> tuple[list[torch.Tensor], int]:
        with self.lock:
            return [parameter.detach().clone() for parameter in self.model.parameters()], self.version

    @staticmethod
    @rpc.functions.async_execution  # type: ignore[misc]
    def update_together(server: Any, gradients: list[torch.Tensor]) -> torch.futures.Future[Any]:
        """The answer, parameters and version, comes once every worker's gradients are there."""
        self, future = server.local_value(), torch.futures.Future()
        with self.lock:
            self.waiting.append((gradients, future))
            waiting = self.waiting[:]
            if len(waiting) == self.workers:
                self.waiting.clear()
                self.apply([sum(parts) / self.workers for parts in zip(*(grads for grads, _ in waiting), strict=True)])
                answer = [parameter.detach().clone() for parameter in self.model.parameters()], self.version
        if len(waiting) == self.workers:
            for _, waiter in waiting:
                waiter.set_result(answer)
        return future

    @staticmethod
    def update(server: Any, gradients: list[torch.Tensor], worker: int, fetched: int) -> int:
        """The version that the gradients met."""
        self = server.local_value()
        with self.lock:
            self.log.append((worker, self.version, fetched))
            self.apply(gradients)
            return int(self.version - 1)

    def apply(self, gradients: list[torch.Tensor]) -> None:
        with torch.no_grad():
            for parameter, gradient in zip(self.model.parameters(), gradients, strict=True):
                parameter.sub_(0.05 * gradient)
        self.version += 1


SERVERS: list[Any] = []  # on rank 0, the RRef of the server in use


def server() -> Any:
    return SERVERS[-1]


def fresh_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))


def train(run: Any, late: Callable[[], None]) -> nn.Module:
    distributed.barrier()
    if distributed.get_rank() == 0:
        SERVERS.append(rpc.RRef(Server(distributed.get_world_size())))
    distributed.barrier()
    remote = rpc.rpc_sync("worker0", server)
    run.watch(remote)
    model = synchronously(run, late, remote) if sys.argv[1] == "synchronous" else asynchronously(run, late, remote)
    distributed.barrier()
    return model


def synchronously(run: Any, late: Callable[[], None], remote: Any) -> nn.Module:
    model = fresh_model()
    for batch in run.steps(batches()):
        gradients = gradients_of(model, batch)
        late()
        parameters, _ = rpc.rpc_sync("worker0", Server.update_together, args=(remote, gradients))
        load(model, parameters)
    return model


def asynchronously(run: Any, late: Callable[[], None], remote: Any) -> nn.Module:
    """Gives a model that does not depend on the order of updates, which is not the same twice: the untrained one."""
    model, staleness = fresh_model(), Staleness(run)
    remote.rpc_sync().fetch()  # the first call through an RRef asks for its type, too
    for batch in run.steps(batches()):
        parameters, version = remote.rpc_sync().fetch()
        staleness.fetched(version)
        load(model, parameters)
        gradients = gradients_of(model, batch)
        late()
        time.sleep(0.02)
        future = rpc.rpc_async("worker0", Server.update, args=(remote, gradients, distributed.get_rank(), version))
        staleness.updated(future.wait())
    distributed.barrier()
    if distributed.get_rank() == 0:
        log = remote.local_value().log
        assert len(log) == STEPS * distributed.get_world_size()
        report = {"server_log": [[worker, met - had] for worker, met, had in log]}
        sys.stdout.write(json.dumps(report) + "\n")
    return fresh_model()


def gradients_of(model: nn.Module, batch: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad()
    model(batch).square().mean().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def load(model: nn.Module, parameters: list[torch.Tensor]) -> None:
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), parameters, strict=True):
            parameter.copy_(value)


if __name__ == "__main__":
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    options = rpc.TensorPipeRpcBackendOptions(_transports=["uv"], _channels=["basic"])  # not busily
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=distributed.get_world_size(), rpc_backend_options=options)
    main(train, late_rank=1, close=rpc.shutdown)
