"""A limit on the outcomes of a run: a power cap, a deadline, memory."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.space.expression import Expression
from crosswind.models.tuner.study.objective import number_of

_COMPARISON = re.compile(r"<=|>=|==|!=|<|>")


@dataclass(frozen=True)
class Limit:
    """A limit: `smaller` stays at or below `larger`, both expressions of outcomes and parameters."""

    text: str
    smaller: Expression
    larger: Expression

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the limit of a text such as `power_watts <= 300` or `accuracy >= 0.9`.

        `<` counts as `<=`: a measured outcome is never just at its limit. Raises: InvalidInputError.
        """
        expected = "expected one comparison by <= or >=, such as 'power_watts <= 300'"
        if not isinstance(text, str):
            raise InvalidInputError(f"limit is {text!r}, {expected}")
        comparisons = _COMPARISON.findall(text)
        if len(comparisons) != 1 or comparisons[0] in ("==", "!="):
            raise InvalidInputError(f"limit {text!r} compares by {' and '.join(comparisons) or 'nothing'}, {expected}")
        left, right = (Expression.parse(side) for side in _COMPARISON.split(text))
        if not left.names | right.names:
            raise InvalidInputError(f"limit {text!r} names no outcome, {expected}")
        smaller, larger = (left, right) if comparisons[0].startswith("<") else (right, left)
        return cls(text, smaller, larger)

    def sides(self, values: Mapping[str, Parameter]) -> tuple[float, float]:
        """Return the number that must stay below, and the one that it must stay below.

        Raises: InvalidInputError where an outcome is missing, or a side is no finite number.
        """
        return number_of(self.smaller, values, "limit"), number_of(self.larger, values, "limit")
