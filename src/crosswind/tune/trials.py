"""A trial while a Python program evaluates it."""

from __future__ import annotations

import logging
import math
import operator
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, SupportsFloat, TypeAlias, TypeVar

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.report import BATCH_MAX, Report
from crosswind.data.schema.trial import TrialState

Value: TypeAlias = SupportsFloat | Mapping[str, float]  # an objective's result: of Python, NumPy or PyTorch

Choice = TypeVar("Choice")

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crosswind.data.schema.trial import Configuration, Parameter, TrialRecord
    from crosswind.models.tuner.space.parameter import Domain

logger = logging.getLogger("crosswind")


@dataclass(frozen=True)
class Named:
    """A parameter that the trial's program has asked for."""

    domain: Domain
    value: Parameter


class Asked(Protocol):
    """The part of a study that its trials need."""

    @property
    def make(self) -> Callable[[Configuration], object] | None:
        """Makes the program's own object of a configuration."""
        ...

    @property
    def grows(self) -> bool:
        """Return whether programs name the parameters while they run."""
        ...

    def value_of(self, trial: Trial, name: str, domain: Domain) -> Parameter:
        """Return the trial's value of a parameter that its program names."""
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
        self._named: dict[str, Named] = {}
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
        """The values of the parameters that apply, by name; in a define-by-run study, of those asked for so far."""
        if self._study.grows:
            return MappingProxyType({name: named.value for name, named in self._named.items()})
        return MappingProxyType(dict(self._record.trial.configuration))

    def suggested(self, name: str) -> Parameter | None:
        """Return the value that the search has chosen for a parameter, None where it did not know it."""
        return self._record.trial.configuration.get(name)

    def used(self, state: TrialState) -> dict[str, Parameter]:
        """Return the values that were asked for; where the trial broke, with those that it did not get to."""
        rest = {} if state in (TrialState.DONE, TrialState.PRUNED) else self._record.trial.configuration
        return {**rest, **self.configuration}

    @property
    def new_parameters(self) -> dict[str, dict[str, object]]:
        """The parameters that were asked for, as a study file has them; empty where the space is fixed."""
        return {name: named.domain.as_json() for name, named in self._named.items()} if self._study.grows else {}

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Return the trial's number for a parameter from low to high, both included.

        The first trial that names a parameter gets a random value; the search chooses those of later ones.
        Raises: InvalidInputError for ends that are none, or other ones than before.
        """
        from crosswind.tune.defining import float_domain  # noqa: PLC0415 - heavy

        return float(self._value(name, float_domain(name, low, high, step=step, log=log)))

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """Return the trial's whole number for a parameter from low to high, both included; as `suggest_float`."""
        from crosswind.tune.defining import int_domain  # noqa: PLC0415 - heavy

        return int(self._value(name, int_domain(name, low, high, step=step, log=log)))

    def suggest_categorical(self, name: str, choices: Sequence[Choice]) -> Choice:
        """Return the trial's choice for a parameter; as `suggest_float`."""
        from crosswind.tune.defining import choice_domain  # noqa: PLC0415 - heavy

        domain, by_value = choice_domain(name, choices)
        choice: Choice = by_value[self._value(name, domain)]
        return choice

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

    def _value(self, name: str, domain: Domain) -> Parameter:
        if name not in self._named:
            self._named[name] = Named(domain, self._study.value_of(self, name, domain))
        elif self._named[name].domain != domain:
            raise InvalidInputError(f"parameter {name} is {domain}, expected {self._named[name].domain} as before")
        return self._named[name].value

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
