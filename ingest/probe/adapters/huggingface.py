"""Hugging Face's Trainer: a callback for `Trainer(callbacks=[CrosswindCallback()])`.

A step is an optimizer step, its input the wait for all of its micro-batches. Evaluation is `other` and saving is
`checkpoint` of the step they follow; what comes at the end of an epoch belongs to the
next step, and after the last of all to none. Source: transformers.TrainerCallback.
"""

from collections.abc import Mapping
from typing import Any

from crosswind.ingest.probe.adapters.callback_loop import CallbackLoop
from crosswind.ingest.probe.run import RunProbe


class TrainerHooks:
    """What the callback does, which records the training; options are those of `crosswind.run`.

    Args:
        run: the run that is open already; without it one is opened for the training.
    """

    def __init__(self, run: RunProbe | None = None, **options: Any) -> None:
        self._loop = CallbackLoop(run, **options)
        self._expected: list[str] = []

    def on_train_begin(self, *_: Any, **named: Any) -> None:
        """The first step begins; the model is watched once it is used, for only then it is known what wraps it."""
        self._loop.begin()
        self._watch_what_wraps(named.get("model"))

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """The batches of the step are there."""
        if self._expected:
            self._expected = []
            self._loop.next_step()
        self._loop.run.batch_arrived()

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        """The step is done, unless something is still to follow it."""
        wanted = {"log": control.should_log, "other": control.should_evaluate, "checkpoint": control.should_save}
        self._expected = [name for name, is_wanted in wanted.items() if is_wanted]
        self._go_on()

    def on_log(self, *_: Any, logs: Mapping[str, float] | None = None, **__: Any) -> None:
        """The loss is known, the mean of the steps since it was known last."""
        if logs and "loss" in logs:
            self._loop.run.record(loss=float(logs["loss"]))
        self._came("log")

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        """Evaluation is over."""
        self._came("other")

    def on_save(self, *_: Any, **__: Any) -> None:
        """A checkpoint is written."""
        self._came("checkpoint")

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Training is over."""
        self._loop.end()

    def _came(self, name: str) -> None:
        if name in self._expected:
            self._expected.remove(name)
            self._go_on()

    def _go_on(self) -> None:
        if not self._expected:
            self._loop.next_step()
        elif self._expected[0] != "log":
            self._loop.enter_phase(self._expected[0])

    def _watch_what_wraps(self, model: Any) -> None:
        """Has the DistributedDataParallel around the model watched, as soon as it calls it."""
        from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415 - torch is the user's

        def called(*_: Any) -> None:
            handle.remove()
            if wrapping := DistributedDataParallel._get_active_ddp_module():
                self._loop.run.watch(wrapping)

        handle = model.register_forward_pre_hook(called)
