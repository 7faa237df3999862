"""Hugging Face's Trainer: a callback for `Trainer(callbacks=[CrosswindCallback()])`.

A step is an optimizer step, its input the wait for all of its micro-batches. Evaluation is `other` and saving is
`checkpoint` of the step they follow; those before the first step and at the end of an epoch are in none.
Source: transformers.TrainerCallback.
"""

from collections.abc import Mapping
from typing import Any

from crosswind.ingest.probe.callbacks.hooks import Hooks, hook


class TrainerHooks(Hooks):
    """Records the Trainer's events."""

    _expected: tuple[str, ...] = ()  # whose time belongs to this step
    _handle: Any = None

    @hook
    def on_train_begin(self, /, *_: Any, model: Any, **__: Any) -> None:
        """Begin the first step; the model is watched once it is used, when its wrapper is known."""
        self._expected = ()
        self._loop.begin()
        self._handle = model.register_forward_pre_hook(self._called)
        self._loop.on_end(self._handle.remove)

    @hook
    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Note that the batches of the step are there."""
        if self._expected:
            self._expected = ()
            self._loop.next_step()
        self._loop.batch_arrived()

    @hook
    def on_step_end(self, /, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        """End the step, unless an evaluation or a checkpoint follows it."""
        wanted = {"log": control.should_log, "other": control.should_evaluate, "checkpoint": control.should_save}
        self._expected = tuple(name for name, is_wanted in wanted.items() if is_wanted)
        self._go_on()

    @hook
    def on_log(self, /, *_: Any, logs: Mapping[str, Any] | None = None, **__: Any) -> None:
        """Record the loss, the mean of the steps since the last one."""
        if logs and "loss" in logs:
            self._loop.record(loss=logs["loss"])
        if "log" in self._expected:
            self._came("log")

    @hook
    def on_evaluate(self, *_: Any, **__: Any) -> None:
        """Note that the evaluation is over."""
        self._came("other")

    @hook
    def on_save(self, *_: Any, **__: Any) -> None:
        """Note that a checkpoint is written."""
        self._came("checkpoint")

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """End the training."""
        self._loop.end()

    def _came(self, name: str) -> None:
        if name in self._expected:
            self._expected = tuple(other for other in self._expected if other != name)
            self._go_on()
        else:
            self._loop.begin_anew()

    def _go_on(self) -> None:
        if not self._expected:
            self._loop.next_step()
        elif self._expected[0] != "log":
            self._loop.enter_phase(self._expected[0])

    @hook
    def _called(self, model: Any, *_: Any) -> None:
        """Watch the DistributedDataParallel around the model, or itself; an evaluation before it is not wrapped.

        The hook is removed with the first training batch, for a model cannot be copied with it.
        """
        from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415 - torch is the user's

        if not model.training:
            return
        self._handle.remove()
        self._loop.watch(DistributedDataParallel._get_active_ddp_module() or model)
