"""Keras 3: a callback for `model.fit(callbacks=[CrosswindCallback()])`.

Under TensorFlow the batch is fetched within the training function, so waiting for it counts as compute; under the other
backends it is the step's input. Validation is `other`. Source: keras.callbacks.Callback.
"""

from collections.abc import Mapping
from typing import Any

from crosswind.ingest.probe.callbacks.hooks import Hooks, hook


class KerasHooks(Hooks):
    """Records the events of `fit`."""

    @hook
    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Begin the first step."""
        self._loop.begin()

    @hook
    def on_train_batch_begin(self, *_: Any, **__: Any) -> None:
        """Note that the batch is there, or will be fetched now."""
        self._loop.batch_arrived()

    @hook
    def on_train_batch_end(self, _batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """End the step."""
        if logs and "loss" in logs:
            self._loop.record(loss=logs["loss"])
        self._loop.next_step()

    @hook
    def on_test_begin(self, *_: Any, **__: Any) -> None:
        """Begin the validation."""
        self._loop.enter_phase("other")

    @hook
    def on_test_end(self, *_: Any, **__: Any) -> None:
        """End the validation."""
        self._loop.leave_phase()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """End the training."""
        self._loop.end()
