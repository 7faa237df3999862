"""Keras: one process fits, each of two trains alone; rank 1's loader is late."""

import json
import os
import sys
import time
from collections.abc import Iterator

import keras
import numpy as np

import crosswind
from crosswind.keras import CrosswindCallback

STEPS, LATE_SECONDS = 24, 0.1


def fitted(rank: int, late_seconds: float, callbacks: list[keras.callbacks.Callback]) -> list[np.ndarray]:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    random = np.random.default_rng(rank)

    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        while True:
            time.sleep(late_seconds if rank == 1 else 0)
            yield random.normal(size=(8, 16)).astype("float32"), np.ones((8, 1), "float32")

    held_out = (np.ones((8, 16), "float32"), np.ones((8, 1), "float32"))
    model.fit(batches(), steps_per_epoch=STEPS // 2, epochs=2, verbose=0, validation_data=held_out, callbacks=callbacks)
    return [np.asarray(weight) for weight in model.get_weights()]


def main() -> None:
    rank = int(os.environ["RANK"])
    unwatched = fitted(rank, 0, [])
    with crosswind.run(workload="keras") as run:
        watched = fitted(rank, LATE_SECONDS, [CrosswindCallback(run)])
    is_same = all(np.array_equal(*pair) for pair in zip(unwatched, watched, strict=True))
    sys.stdout.write(json.dumps({"rank": rank, "is_same": is_same}) + "\n")


if __name__ == "__main__":
    main()
