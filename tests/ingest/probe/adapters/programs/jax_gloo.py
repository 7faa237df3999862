"""JAX over two processes, gloo between them; process 1 is late before the step's computation."""

import json
import os
import sys
import time
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import crosswind

STEPS, LATE_SECONDS = 24, 0.1


def train(run: Any, rank: int, late_seconds: float) -> tuple[np.ndarray, bool]:
    mesh = Mesh(np.array(jax.devices()), ("data",))
    split, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())

    @jax.jit
    def update(weights: jax.Array, batch: jax.Array) -> jax.Array:
        return weights - 0.1 * jax.grad(lambda w: jnp.mean((batch @ w - 1) ** 2))(weights)

    weights = jax.device_put(jnp.zeros(16), whole)
    update = run.watch(update) if run else update
    random = np.random.default_rng(rank)
    batches = [random.normal(size=(8, 16)).astype(np.float32) for _ in range(STEPS)]
    for local in run.steps(batches) if run else batches:
        time.sleep(late_seconds if rank == 1 else 0)
        weights = update(weights, jax.make_array_from_process_local_data(split, local))
        weights.block_until_ready()
    is_lowered = "func" in update.lower(weights, jax.make_array_from_process_local_data(split, local)).as_text()
    return np.asarray(weights.addressable_data(0)), is_lowered


def main() -> None:
    rank, port = int(os.environ["RANK"]), os.environ["PORTS"].split()[0]
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", int(os.environ["WORLD_SIZE"]), rank)
    unwatched, _ = train(None, rank, 0)
    with crosswind.run(workload="jax") as run:
        watched, is_lowered = train(run, rank, LATE_SECONDS)
    is_same = bool(np.array_equal(unwatched, watched))
    sys.stdout.write(json.dumps({"rank": rank, "is_same": is_same, "is_lowered": is_lowered}) + "\n")
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
