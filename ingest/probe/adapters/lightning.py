"""Lightning: a callback for `Trainer(callbacks=[CrosswindCallback()])`.

A step is a batch. Validation is `other` and saving is `checkpoint`, of the step that follows; what comes after the last
batch belongs to none. Source: lightning.pytorch.callbacks.Callback.
"""

from typing import Any

from crosswind.ingest.probe.adapters.callback_loop import CallbackLoop
from crosswind.ingest.probe.run import RunProbe


class LightningHooks:
    """What the callback does, which records the training; options are those of `crosswind.run`.

    Args:
        run: the run that is open already; without it one is opened for the training.
    """

    def __init__(self, run: RunProbe | None = None, **options: Any) -> None:
        self._loop = CallbackLoop(run, **options)
        self._save: Any = None

    def on_train_start(self, trainer: Any, _module: Any) -> None:
        """The first step begins, and saving is marked from now on."""
        self._loop.begin(trainer.strategy.model)
        save = trainer.save_checkpoint

        def marked(*arguments: Any, **named: Any) -> Any:
            with self._loop.run.phase("checkpoint"):
                return save(*arguments, **named)

        trainer.save_checkpoint = marked

    def on_train_batch_start(self, *_: Any) -> None:
        """The batch is there."""
        self._loop.run.batch_arrived()

    def on_train_batch_end(self, trainer: Any, _module: Any, outputs: Any, _batch: Any, batch_idx: int) -> None:
        """The step is done; its loss is recorded as often as Lightning logs."""
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None and batch_idx % max(trainer.log_every_n_steps, 1) == 0:
            self._loop.run.record(loss=loss.detach())
        self._loop.next_step()

    def on_validation_start(self, *_: Any) -> None:
        """Validation begins."""
        self._loop.enter_phase("other")

    def on_validation_end(self, *_: Any) -> None:
        """Validation is over."""
        self._loop.leave_phase()

    def on_train_end(self, trainer: Any, _module: Any) -> None:
        """Training is over."""
        self._end(trainer, None)

    def on_exception(self, trainer: Any, _module: Any, exception: BaseException) -> None:
        """Training failed."""
        self._end(trainer, exception)

    def _end(self, trainer: Any, error: BaseException | None) -> None:
        vars(trainer).pop("save_checkpoint", None)
        self._loop.end(error)
