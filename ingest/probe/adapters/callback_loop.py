"""The loop of a framework that calls us back: when a step begins and ends, and what happens between two."""

from contextlib import AbstractContextManager
from typing import Any

from crosswind.ingest.probe.adapters import ADAPTERS
from crosswind.ingest.probe.run import RunProbe


class CallbackLoop:
    """Steps of a loop that somebody else runs; the run is the caller's, or one that is opened for the training."""

    def __init__(self, run: RunProbe | None, **options: Any) -> None:
        self._given = run
        self._options = options
        self._phase: AbstractContextManager[None] | None = None
        self.run = run or RunProbe(**options)

    def begin(self, *models: Any) -> None:
        """Training begins, with waiting for the first batch; those of the models that can be watched are."""
        if self._given is None:
            self.run = RunProbe(**self._options)
            self.run.__enter__()
        for model in models:
            if any(adapter.matches(model) for adapter in ADAPTERS):
                self.run.watch(model)
        self.run.begin_step()

    def next_step(self) -> None:
        """A step is done, and the wait for the next batch begins."""
        self.leave_phase()
        self.run.end_step()
        self.run.begin_step()

    def enter_phase(self, name: str) -> None:
        """What comes is `checkpoint` or `other`, until it is left."""
        self.leave_phase()
        self._phase = self.run.phase(name)
        self._phase.__enter__()

    def leave_phase(self) -> None:
        """What comes is part of the step again."""
        phase, self._phase = self._phase, None
        if phase:
            phase.__exit__(None, None, None)

    def end(self, error: BaseException | None = None) -> None:
        """Training is over; what was begun is no step."""
        self.leave_phase()
        self.run.abandon_step()
        if self._given is None:
            self.run.__exit__(type(error) if error else None, error, None)
