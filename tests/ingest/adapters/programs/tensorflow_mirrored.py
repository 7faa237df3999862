"""TensorFlow's MultiWorkerMirroredStrategy, a loop of our own with an all-reduce of gradients; worker 1 is late."""

import json
import os
import sys
import time
from typing import Any

RANK = int(os.environ["RANK"])
PORTS = [f"127.0.0.1:{port}" for port in sys.argv[1:3]]
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": PORTS}, "task": {"type": "worker", "index": RANK}})

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402 - it reads TF_CONFIG

import crosswind  # noqa: E402

STEPS, LATE_SECONDS = 24, 0.1


def train(strategy: tf.distribute.Strategy, run: Any, late_seconds: float) -> np.ndarray:
    weights = tf.zeros(16)

    @tf.function
    def gradient(weights: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = tf.reduce_mean((tf.linalg.matvec(batch, weights) - 1) ** 2)
        return tape.gradient(loss, weights)

    @tf.function
    def summed(gradients: tf.Tensor) -> tf.Tensor:
        def within(each: tf.Tensor) -> tf.Tensor:
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(each))

        return strategy.run(within, args=(gradients,))

    all_reduce = run.watch(summed) if run else summed
    random = np.random.default_rng(RANK)
    batches = [random.normal(size=(8, 16)).astype(np.float32) for _ in range(STEPS)]
    for batch in run.steps(batches) if run else batches:
        gradients = gradient(weights, batch)
        time.sleep(late_seconds if RANK == 1 else 0)
        weights = weights - 0.1 * all_reduce(gradients) / 2
    return weights.numpy()


def main() -> None:
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    unwatched = train(strategy, None, 0)
    with crosswind.run(workload="tensorflow") as run:
        watched = train(strategy, run, LATE_SECONDS)
    is_same = bool(np.array_equal(unwatched, watched))
    sys.stdout.write(json.dumps({"rank": RANK, "is_same": is_same}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # workers that end one after the other report each other missing


if __name__ == "__main__":
    main()
