"""Lightning: a callback for `Trainer(callbacks=[CrosswindCallback()])`.

A step is a batch. Validation is `other` and saving is `checkpoint`, of the step that follows; time after the last batch
belongs to none. Source: lightning.pytorch.callbacks.Callback.
"""

import functools
from typing import Any

from crosswind.ingest.probe.callbacks.hooks import Hooks, hook
from crosswind.ingest.probe.torch_calls.patches import Patches


class LightningHooks(Hooks):
    """Records the Trainer's events."""

    @hook
    def on_train_start(self, trainer: Any, _module: Any) -> None:
        """Begin the first step, and mark saving from now on."""
        self._loop.begin(trainer.strategy.model)
        self._mark_saving(trainer)

    @hook
    def on_train_batch_start(self, *_: Any) -> None:
        """Note that the batch is there."""
        self._loop.batch_arrived()

    @hook
    def on_train_batch_end(self, trainer: Any, _module: Any, outputs: Any, _batch: Any, batch_idx: int) -> None:
        """End the step; its loss is recorded as often as Lightning logs."""
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None and batch_idx % max(trainer.log_every_n_steps, 1) == 0:
            self._loop.record(loss=loss)
        self._loop.next_step()

    @hook
    def on_validation_start(self, *_: Any) -> None:
        """Begin the validation."""
        self._loop.enter_phase("other")

    @hook
    def on_validation_end(self, *_: Any) -> None:
        """End the validation."""
        self._loop.leave_phase()

    def on_train_end(self, *_: Any) -> None:
        """End the training."""
        self._loop.end()

    def on_exception(self, _trainer: Any, _module: Any, exception: BaseException) -> None:
        """Note that the training failed."""
        self._loop.end(exception)

    def _mark_saving(self, trainer: Any) -> None:
        owner = next(holder for holder in (trainer, *type(trainer).__mro__) if "save_checkpoint" in vars(holder))
        save = vars(owner)["save_checkpoint"]  # a function in either, bound by the class alone

        @functools.wraps(save)
        def marked(*arguments: Any, **named: Any) -> Any:
            with self._loop.phase("checkpoint"):
                return save(*arguments, **named)

        patches = Patches()
        patches.set(owner, "save_checkpoint", marked)
        self._loop.on_end(patches.undo)
