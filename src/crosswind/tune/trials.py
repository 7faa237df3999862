"""A trial while a Python program evaluates it."""

from __future__ import annotations

import logging
import math
import operator
from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, SupportsFloat, TypeAlias

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.report import BATCH_MAX, Report

Value: TypeAlias = SupportsFloat | Mapping[str, float]  # an objective's result: of Python, NumPy or PyTorch

if TYPE_CHECKING:
    from collections.abc import Callable

    from crosswind.data.schema.trial import Configuration, Parameter, TrialRecord

logger = logging.getLogger("crosswind")


class Asked(Protocol):
    """The part of a study that its trials need."""

    @property
    def make(self) -> Callable[[Configuration], object] | None:
        """Makes the program's own object of a configuration."""
        ...

    def report(self, trial: Trial, values: Mapping[int, float]) -> str:
        """Send a trial's intermediate values by step; return in words why it should stop, empty to go on."""
        ...


class TrialPruned(Exception):  # noqa: N818 - Optuna's name, so that its objectives run unchanged
    """Raised by an objective that gives its trial up: the configuration counts as worse than those measured."""


class TrialInfeasible(Exception):  # noqa: N818 - beside the other
    """Raised by an objective whose configuration cannot run; the message is the reason."""


class Trial:
    """A configuration to evaluate; its lease is renewed until its study is told what came of it.

    Example:
        >>> trial = study.ask()
        >>> study.tell(trial, train(lr=trial["lr"], batch=trial["batch"]))
    """

    def __init__(self, record: TrialRecord, study: Asked, holding: ExitStack) -> None:
        self._record = record
        self._study = study
        self._holding = holding
        self._unsent: dict[int, float] = {}
        self._why_stop = ""

    def __repr__(self) -> str:
        return f"Trial({self.trial_id!r}, {dict(self.configuration)})"

    def __getitem__(self, name: str) -> Parameter:
        """Return the value of a parameter. Raises: KeyError for one that does not apply."""
        return self.configuration[name]

    @property
    def trial_id(self) -> str:
        """The trial's id, by which `crosswind tune` knows it."""
        return self._record.trial_id

    @property
    def configuration(self) -> Mapping[str, Parameter]:
        """The values of the parameters that apply, by name."""
        return MappingProxyType(dict(self._record.trial.configuration))

    @property
    def params(self) -> dict[str, Parameter]:
        """The configuration as a dictionary of its own, by the name that Optuna has for it."""
        return dict(self.configuration)

    @property
    def checkpoint(self) -> str | None:
        """The file to go on from that an earlier holder of this trial has left; None without one."""
        return self._record.checkpoint

    @property
    def owner(self) -> str | None:
        """The process that evaluates it."""
        return self._record.owner

    def report(self, value: SupportsFloat, step: int) -> None:
        """Report what the objective comes to so far, as measured; Optuna has the same order.

        It is sent by the next `should_stop`, and with the trial's result. NaN is a reason to stop.
        Raises: InvalidInputError for a step that is no whole number from 0 on.
        """
        number, place = float(value), operator.index(step)
        if not math.isfinite(number):
            self._why_stop = self._why_stop or f"at step {place} its value is {number}"
            return
        Report(place, number)
        self._unsent[place] = number
        if len(self._unsent) >= BATCH_MAX:
            self.send_reports()

    def should_stop(self) -> bool:
        """Send what was reported; return whether the study's rule, `stop_early`, ends the trial.

        Whoever stops raises TrialPruned, or tells `state="pruned"`. It is true as well once the lease is lost.
        """
        self.send_reports()
        return bool(self._why_stop)

    should_prune = should_stop  # the name that Optuna has for it

    @property
    def why_stop(self) -> str:
        """The reason to stop in words, empty without one."""
        return self._why_stop

    def send_reports(self) -> None:
        """Send what was reported; where no service answers, it is sent the next time."""
        if self._unsent:
            sent, self._unsent = self._unsent, {}
            try:
                self._why_stop = self._study.report(self, sent) or self._why_stop
            except UnavailableError as error:
                self._unsent = sent | self._unsent
                logger.warning("not reported yet: %s", error)

    def lose(self, reason: str) -> None:
        """Note that the lease is lost: somebody else may have the trial."""
        self._why_stop = reason

    def close(self) -> None:
        """Let go of what the trial held in this process."""
        self._holding.close()

    def as_dataclass(self) -> object:
        """Return the study's dataclass with the configuration in its fields. Raises: InvalidInputError without one."""
        if self._study.make is None:
            raise InvalidInputError(f"trial {self.trial_id}: the study's space is no dataclass, expected one")
        return self._study.make(self.configuration)
