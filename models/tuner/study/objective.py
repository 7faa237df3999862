"""An objective: an outcome, or an expression of outcomes, that a search makes smaller or larger."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.space.expression import Expression

DIRECTIONS: Mapping[str, bool] = {"minimise": False, "minimize": False, "maximise": True, "maximize": True}


@dataclass(frozen=True)
class Objective:
    """An expression of outcomes and parameters, such as `energy_joules / batch`, and whether larger is better."""

    expression: Expression
    is_maximised: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the objective of a text such as `step_p50_seconds`, or `maximise samples / run_seconds`.

        Raises: InvalidInputError that quotes the text, and for an expression without any outcome.
        """
        if not isinstance(text, str):
            raise InvalidInputError(f"objective is {text!r}, expected a text such as 'step_p50_seconds'")
        first, _, rest = text.strip().partition(" ")
        direction = DIRECTIONS.get(first.lower())
        expression = Expression.parse(text.strip() if direction is None else rest.strip())
        if not expression.names:
            raise InvalidInputError(f"objective {text!r} names no outcome, expected one such as step_p50_seconds")
        return cls(expression, bool(direction))

    @property
    def text(self) -> str:
        """The objective as people write it."""
        return f"{'maximise' if self.is_maximised else 'minimise'} {self.expression.text}"

    def value(self, values: Mapping[str, Parameter]) -> float:
        """Return the number to make smaller: negated where larger is better.

        Raises: InvalidInputError where an outcome is missing, or the value is no finite number.
        """
        number = number_of(self.expression, values, "objective")
        return -number if self.is_maximised else number


def number_of(expression: Expression, values: Mapping[str, Parameter], what: str) -> float:
    """Return the finite value of an expression. Raises: InvalidInputError for another value."""
    value = expression.value(values)
    if isinstance(value, bool | str) or not math.isfinite(value):
        raise InvalidInputError(f"{what} {expression.text!r} is {value!r}, expected a finite number")
    return float(value)
