"""Reports of running trials: what the objective comes to so far."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from crosswind.data.schema.errors import InvalidInputError

STEP_MAX = 2**53  # whole numbers that JSON carries exactly
BATCH_MAX = 1_000  # reports that are sent at once
REPORTS_MAX = 10_000  # of a trial


@dataclass(frozen=True)
class Report:
    """An intermediate value of a trial's objective, lower is better; a later one of the same step replaces it.

    Raises:
        InvalidInputError: For a step that is no whole number from 0 on, and a value that is not finite.
    """

    step: int
    value: float

    def __post_init__(self) -> None:
        if isinstance(self.step, bool) or not isinstance(self.step, int) or not 0 <= self.step <= STEP_MAX:
            raise InvalidInputError(f"step is {self.step!r:.80}, expected a whole number from 0 to {STEP_MAX}")
        if not isinstance(self.value, int | float) or not math.isfinite(self.value):
            raise InvalidInputError(f"value is {self.value!r:.80} at step {self.step}, expected a finite number")

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Return the report of `{"step": 3, "value": 0.25}`. Raises: KeyError, TypeError, InvalidInputError."""
        return cls(fields["step"], fields["value"])

    def as_json(self) -> dict[str, Any]:
        """Return step and value."""
        return {"step": self.step, "value": self.value}


@dataclass(frozen=True)
class TrialReport:
    """An intermediate value of a trial's objective, as it is listed."""

    trial_id: str
    step: int
    value: float
