"""Keras 3: a callback for `model.fit(callbacks=[CrosswindCallback()])`.

Under TensorFlow the batch is fetched within the training function, so waiting for it counts as compute; under the other
backends it is the step's input. Validation is `other`. Source: keras.callbacks.Callback.
"""

from collections.abc import Mapping
from typing import Any

from crosswind.ingest.probe.adapters.callback_loop import CallbackLoop
from crosswind.ingest.probe.run import RunProbe


class KerasHooks:
    """What the callback does, which records the training; options are those of `crosswind.run`.

    Args:
        run: the run that is open already; without it one is opened for the training.
    """

    def __init__(self, run: RunProbe | None = None, **options: Any) -> None:
        super().__init__()  # the framework's
        self._loop = CallbackLoop(run, **options)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """The first step begins."""
        self._loop.begin()

    def on_train_batch_begin(self, *_: Any, **__: Any) -> None:
        """The batch is there, or will be fetched now."""
        self._loop.run.batch_arrived()

    def on_train_batch_end(self, _batch: int, logs: Mapping[str, float] | None = None) -> None:
        """The step is done."""
        if logs and "loss" in logs:
            self._loop.run.record(loss=float(logs["loss"]))
        self._loop.next_step()

    def on_test_begin(self, *_: Any, **__: Any) -> None:
        """Validation begins."""
        self._loop.enter_phase("other")

    def on_test_end(self, *_: Any, **__: Any) -> None:
        """Validation is over."""
        self._loop.leave_phase()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Training is over."""
        self._loop.end()
