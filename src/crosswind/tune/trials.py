"""A trial while a Python program evaluates it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, SupportsFloat, TypeAlias

from crosswind.data.schema.errors import InvalidInputError

Value: TypeAlias = SupportsFloat | Mapping[str, float]  # an objective's result: of Python, NumPy or PyTorch

if TYPE_CHECKING:
    from collections.abc import Callable

    from crosswind.data.schema.trial import Configuration, Parameter, TrialRecord


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

    def __init__(
        self, record: TrialRecord, make: Callable[[Configuration], object] | None, holding: ExitStack | None = None
    ) -> None:
        self._record = record
        self._make = make
        self._holding = holding or ExitStack()
        self._lost = ""

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

    def lose(self, reason: str) -> None:
        """Note that the lease is lost: somebody else may have the trial."""
        self._lost = reason

    def close(self) -> None:
        """Let go of what the trial held in this process."""
        self._holding.close()

    def as_dataclass(self) -> object:
        """Return the study's dataclass with the configuration in its fields. Raises: InvalidInputError without one."""
        if self._make is None:
            raise InvalidInputError(f"trial {self.trial_id}: the study's space is no dataclass, expected one")
        return self._make(self.configuration)
