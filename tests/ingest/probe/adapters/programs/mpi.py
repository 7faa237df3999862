"""Data-parallel regression by mpi4py, once without the probe, once with it; rank 1 is late before the all-reduce."""

import json
import sys
import time
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

import crosswind

STEPS, LATE_SECONDS = 24, 0.1


class Comms(NamedTuple):
    world: Any
    unnamed: Any
    row: Any
    own: Any


def train(comms: Comms, batches: Any, late_seconds: float) -> np.ndarray:
    """The weights after the batches; every step has collectives, a transfer, and a request that is waited for late."""
    comm, weights, total = comms.world, np.zeros(16), np.zeros(16)
    for inputs, targets in batches:
        gradient = inputs.T @ (inputs @ weights - targets) / len(inputs)
        time.sleep(late_seconds if comm.rank == 1 else 0)
        comm.Allreduce(gradient, total)
        weights -= 0.1 * total / comm.size
        comm.bcast({"step": 1}, root=0)
        request = comm.isend(1.0, dest=1) if comm.rank == 0 else comm.irecv(source=0)
        request.wait()
        comm.Ibarrier().Wait()
        weights *= comms.unnamed.allreduce(1) / comms.row.allreduce(1)
        request = comms.own.Ibarrier()
        time.sleep(0.002)
        request.Wait()
    return weights


def batches(rank: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Batches of (8, 16) with their targets, others on every rank."""
    random = np.random.default_rng(rank)
    return [(inputs := random.normal(size=(8, 16)), inputs.sum(axis=1)) for _ in range(STEPS)]


def main() -> None:
    """Says whether both trainings came to the same weights."""
    comms = Comms(MPI.COMM_WORLD, MPI.COMM_WORLD.Split(), MPI.COMM_WORLD.Split(), MPI.COMM_SELF)
    comms.row.Set_name("row")
    rank = comms.world.rank
    unwatched = train(comms, batches(rank), 0)
    with crosswind.run(workload="mpi") as run:
        watched_comms = Comms(*map(run.watch, comms))
        watched = train(watched_comms, run.steps(batches(rank)), LATE_SECONDS)
    watched_comms.world.Barrier()  # it still passes on
    is_same, is_equal = bool(np.array_equal(unwatched, watched)), watched_comms == comms
    sys.stdout.write(json.dumps({"rank": rank, "is_same": is_same, "is_equal": is_equal}) + "\n")


if __name__ == "__main__":
    main()
