"""TensorFlow's MultiWorkerMirroredStrategy, a loop of our own with an all-reduce of gradients; worker 1 is late."""

import faulthandler
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

RANK = int(os.environ["RANK"])
WORKERS = [f"127.0.0.1:{port}" for port in os.environ["PORTS"].split()]
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": WORKERS}, "task": {"type": "worker", "index": RANK}})

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402 - it reads TF_CONFIG

import crosswind  # noqa: E402

STEPS, LATE_SECONDS = 24, 0.1
LONGEST_SECONDS = 120


def train(strategy: tf.distribute.Strategy, run: Any, late_seconds: float) -> tuple[np.ndarray, bool]:
    weights = tf.zeros(16)

    @tf.function
    def gradient(weights: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = tf.reduce_mean((tf.linalg.matvec(batch, weights) - 1) ** 2)
        return tape.gradient(loss, weights)

    @tf.function
    def summed(gradients: tf.Tensor) -> tf.Tensor:
        def within(tensor: tf.Tensor) -> tf.Tensor:
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(tensor))

        return strategy.run(within, args=(gradients,))

    all_reduce = run.watch(summed) if run else summed
    random = np.random.default_rng(RANK)
    batches = [random.normal(size=(8, 16)).astype(np.float32) for _ in range(STEPS)]
    for batch in run.steps(batches) if run else batches:
        gradients = gradient(weights, batch)
        time.sleep(late_seconds if RANK == 1 else 0)
        weights = weights - 0.1 * all_reduce(gradients) / 2
    is_concrete = all_reduce.get_concrete_function(weights) is not None
    return weights.numpy(), is_concrete


def await_others() -> None:
    """Until all have their weights: who ends at once takes with it what others still read."""
    folder = Path(os.environ["CROSSWIND_SPOOL"]).parent
    (folder / f"done-{RANK}").touch()
    while len(list(folder.glob("done-*"))) < len(WORKERS):
        time.sleep(0.01)


def main() -> None:
    faulthandler.dump_traceback_later(LONGEST_SECONDS, exit=True)  # a worker without its peer waits for ever
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    unwatched, _ = train(strategy, None, 0)
    with crosswind.run(workload="tensorflow") as run:
        watched, is_concrete = train(strategy, run, LATE_SECONDS)
    is_same = bool(np.array_equal(unwatched, watched))
    sys.stdout.write(json.dumps({"rank": RANK, "is_same": is_same, "is_concrete": is_concrete}) + "\n")
    sys.stdout.flush()
    await_others()
    os._exit(0)  # workers that end one after the other report each other missing


if __name__ == "__main__":
    main()
