"""Data-parallel regression by mpi4py, once without the probe, once with it; rank 1 is late before the all-reduce."""

import sys
import time
from typing import Any

import numpy as np
from mpi4py import MPI

import crosswind

STEPS, LATE_SECONDS = 24, 0.1


def train(comm: Any, batches: Any, late_seconds: float) -> np.ndarray:
    """The weights after the batches; every step has an all-reduce, a broadcast, a transfer and a barrier."""
    weights, total = np.zeros(16), np.zeros(16)
    for inputs, targets in batches:
        gradient = inputs.T @ (inputs @ weights - targets) / len(inputs)
        time.sleep(late_seconds if comm.rank == 1 else 0)
        comm.Allreduce(gradient, total)
        weights -= 0.1 * total / comm.size
        comm.bcast({"step": 1}, root=0)
        request = comm.isend(1.0, dest=1) if comm.rank == 0 else comm.irecv(source=0)
        request.wait()
        comm.Ibarrier().Wait()
    return weights


def batches(rank: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Batches of (8, 16) with their targets, others on every rank."""
    random = np.random.default_rng(rank)
    return [(inputs := random.normal(size=(8, 16)), inputs.sum(axis=1)) for _ in range(STEPS)]


def main() -> None:
    """Says whether both trainings came to the same weights."""
    world = MPI.COMM_WORLD
    unwatched = train(world, batches(world.rank), 0)
    with crosswind.run(workload="mpi") as run:
        watched_comm = run.watch(world)
        watched = train(watched_comm, run.steps(batches(world.rank)), LATE_SECONDS)
    watched_comm.Barrier()  # it still passes on
    is_same = np.array_equal(unwatched, watched) and watched_comm == world
    sys.stdout.write(f'{{"is_same": {str(is_same).lower()}}}\n')


if __name__ == "__main__":
    main()
