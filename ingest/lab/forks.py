"""Ranks of one training program as forks of a process that has imported PyTorch already."""

import gc
import os
import signal
import socket
from collections.abc import Callable

import torch._dynamo  # noqa: F401 - every optimizer imports it, which takes a second: here once for all ranks

from crosswind.ingest.lab.faults import die_with_parent
from crosswind.ingest.lab.forked import exit_after


def in_forks(ranks: int, work: Callable[[], None]) -> int:
    """Run `work` in as many forks, with the environment that torchrun gives a rank; the first failure ends the others.

    Returns the exit code of the first rank that failed, 0 if none did.
    """
    port = _free_port()
    gc.freeze()  # a garbage collection in a fork would copy PyTorch's memory
    running = {_fork(rank, ranks, port, work) for rank in range(ranks)}
    failed = 0
    while running:
        process, status = os.wait()
        running.discard(process)
        if status and not failed:
            failed = abs(os.waitstatus_to_exitcode(status))
            for other in running:
                os.kill(other, signal.SIGTERM)
    return failed


def _fork(rank: int, ranks: int, port: int, work: Callable[[], None]) -> int:
    process = os.fork()
    if process == 0:
        exit_after(lambda: _be_rank(rank, ranks, port, work))
    return process


def _be_rank(rank: int, ranks: int, port: int, work: Callable[[], None]) -> None:
    die_with_parent()
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_PORT": port}
    os.environ |= {"MASTER_ADDR": "127.0.0.1"} | {name: str(value) for name, value in numbers.items()}
    work()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
