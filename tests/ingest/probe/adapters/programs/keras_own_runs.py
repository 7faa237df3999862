"""Keras' fit with a callback that opens the runs; Keras reports no failure to callbacks."""

from typing import Any

import keras
import numpy as np
from own_runs import FAILS_AFTER, STEPS, LossIsNaNError, main

from crosswind.keras import CrosswindCallback

CALLBACK = CrosswindCallback(workload="regression")


class Failure(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch == FAILS_AFTER:
            raise LossIsNaNError


def fit(fails: bool) -> None:
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    inputs, outputs = np.ones((8 * STEPS, 16), "float32"), np.ones((8 * STEPS, 1), "float32")
    model.fit(inputs, outputs, batch_size=8, verbose=0, callbacks=[CALLBACK, *([Failure()] if fails else [])])


if __name__ == "__main__":
    main(fit)
