"""Formulas as trees that shrink as values become known.

Some values may be missing from a configuration (a parameter that does not apply) or not exist (a division by zero).
Both are values here, so that the answer does not depend on the order in which the parts become known: `or` is true
where any part is, `and` false where any part is, and everything else has no value if one of its parts has none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Protocol

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.space.operations import FALSE, MAGNITUDE_MAX, TRUE, UNSURE, Operation, Range


class Missing(Enum):
    """The value of a parameter that does not apply."""

    ABSENT = "absent"


ABSENT = Missing.ABSENT


@dataclass(frozen=True)
class Undefined:
    """A value that does not exist, and why."""

    reason: str


Value = Parameter | Missing | Undefined
Values = Mapping[str, "Parameter | Missing | Formula"]


class Formula(Protocol):
    """A tree of operations over named values."""

    @property
    def names(self) -> frozenset[str]:
        """The names whose values it still needs."""
        ...

    def given(self, values: Values) -> "Formula":
        """Return what is left of it when these values are known, or other formulas stand for the names."""
        ...

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Between which ends its value lies (false is 0, true 1) whatever the names stand for; None if unknown."""
        ...


@dataclass(frozen=True)
class Known:
    """A value."""

    value: Value
    names = frozenset[str]()

    def given(self, values: Values) -> Formula:  # noqa: ARG002  it needs none
        """Itself."""
        return self

    def bounds(self, ranges: Mapping[str, Range]) -> Range:  # noqa: ARG002
        """The number, where it is one."""
        return (float(self.value), float(self.value)) if isinstance(self.value, int | float) else None


@dataclass(frozen=True)
class Named:
    """The value that a name stands for."""

    name: str

    @cached_property
    def names(self) -> frozenset[str]:
        """The name."""
        return frozenset({self.name})

    def given(self, values: Values) -> Formula:
        """The value, once it is known."""
        value = values.get(self.name, self)
        return Known(value) if isinstance(value, int | float | str | Missing) else value

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """The name's range."""
        return ranges.get(self.name)


@dataclass(frozen=True)
class Applied:
    """An operation on parts; make it by `applied`."""

    operation: Operation
    parts: tuple[Formula, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """Those of the parts."""
        return frozenset().union(*(part.names for part in self.parts))

    def given(self, values: Values) -> Formula:
        """The operation on what is left of the parts."""
        if self.names.isdisjoint(values):
            return self
        return applied(self.operation, [part.given(values) for part in self.parts])

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Return the bounds that the operation makes of the parts' ranges."""
        return self.operation.bounds([part.bounds(ranges) for part in self.parts])


@dataclass(frozen=True)
class Junction:
    """`and` (decided by false) or `or` (decided by true) of parts; make it by `joined`."""

    decisive: bool
    parts: tuple[Formula, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """Those of the parts."""
        return frozenset().union(*(part.names for part in self.parts))

    def given(self, values: Values) -> Formula:
        """Decided as soon as one part is."""
        if self.names.isdisjoint(values):
            return self
        return joined(self.decisive, [part.given(values) for part in self.parts])

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Sure where one part decides, or none can."""
        decided, other = (TRUE, FALSE) if self.decisive else (FALSE, TRUE)
        every = [part.bounds(ranges) for part in self.parts]
        return decided if decided in every else other if set(every) == {other} else UNSURE


def applied(operation: Operation, parts: Sequence[Formula]) -> Formula:
    """The operation on parts: its value where all are known."""
    values = [part.value for part in parts if isinstance(part, Known)]
    if len(values) == len(parts):
        return Known(_value(operation, values))
    if operation.is_exact_in_any_order:
        parts = _gathered(operation, parts)
    return Applied(operation, tuple(parts))


def joined(decisive: bool, parts: Sequence[Formula]) -> Formula:
    """`or` of parts where true is decisive, `and` where false is; known as soon as one part decides."""
    unlike = [part for part in map(_as_truth, parts) if part != Known(not decisive)]
    if Known(decisive) in unlike:
        return Known(decisive)
    still = tuple(part for part in unlike if not isinstance(part, Known))
    without = [part for part in unlike if isinstance(part, Known)]
    if still:
        return Junction(decisive, (*still, *without))
    undefined = [part for part in without if isinstance(part.value, Undefined)]
    return (undefined or without or [Known(not decisive)])[0]


def _as_truth(part: Formula) -> Formula:
    if isinstance(part, Known) and isinstance(part.value, int | float | str) and not isinstance(part.value, bool):
        return Known(Undefined(f"{part.value!r} is no truth value"))
    return part


def _gathered(operation: Operation, parts: Sequence[Formula]) -> Sequence[Formula]:
    """The parts with their known whole numbers made one, so that equal remainders look equal."""
    whole = [part.value for part in parts if isinstance(part, Known) and isinstance(part.value, int)]
    if len(whole) < 2:
        return parts
    others = [part for part in parts if not (isinstance(part, Known) and isinstance(part.value, int))]
    return [Known(_value(operation, whole)), *others]


def _value(operation: Operation, values: Sequence[Value]) -> Value:
    undefined = [operand for operand in values if isinstance(operand, Undefined)]
    if undefined or (ABSENT in values and not operation.takes_missing):
        return undefined[0] if undefined else ABSENT
    texts = [operand for operand in values if isinstance(operand, str)] if operation.is_numeric else []
    if texts:
        return Undefined(f"{operation.name} of the text {texts[0][:80]!r}")
    try:
        value = operation.apply(*values)
    except ZeroDivisionError:
        return Undefined("division by zero")
    except (ArithmeticError, ValueError, TypeError, InvalidInputError) as error:
        return Undefined(f"{operation.name} of {', '.join(map(repr, values))}: {error}"[:200])
    if isinstance(value, int | float) and not abs(value) <= MAGNITUDE_MAX:
        return Undefined(f"{operation.name} gives a number that is too large")
    return value
