"""Formulas as trees, evaluated value by value.

Some values may be missing from a configuration (a parameter that does not apply) or not exist (a division by zero).
Both are values here, so that the result does not depend on the order of evaluation: `or` is true where any part is,
`and` false where any part is, and everything else has no value if one of its parts has none.
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
        """Return the formula with these values, or formulas, in place of the names."""
        ...

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Return the ends of its values (false is 0, true 1) for names in these ranges; None if unknown."""
        ...


@dataclass(frozen=True)
class Constant:
    """A value."""

    value: Value
    names = frozenset[str]()

    def given(self, values: Values) -> Formula:  # noqa: ARG002  it needs none
        """Return itself."""
        return self

    def bounds(self, ranges: Mapping[str, Range]) -> Range:  # noqa: ARG002
        """Return the number twice; None for other values."""
        return (float(self.value), float(self.value)) if isinstance(self.value, int | float) else None


@dataclass(frozen=True)
class Variable:
    """The value of a name."""

    name: str

    @cached_property
    def names(self) -> frozenset[str]:
        """The name."""
        return frozenset({self.name})

    def given(self, values: Values) -> Formula:
        """Return the value, if it is among these."""
        value = values.get(self.name, self)
        return Constant(value) if isinstance(value, int | float | str | Missing) else value

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Return the name's range."""
        return ranges.get(self.name)


@dataclass(frozen=True)
class Application:
    """An operation on parts; make it by `applied`."""

    operation: Operation
    parts: tuple[Formula, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the parts."""
        return frozenset().union(*(part.names for part in self.parts))

    def given(self, values: Values) -> Formula:
        """Return the operation on the parts with these values."""
        if self.names.isdisjoint(values):
            return self
        return applied(self.operation, [part.given(values) for part in self.parts])

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Return the operation's bounds for the parts' ranges."""
        return self.operation.bounds([part.bounds(ranges) for part in self.parts])


@dataclass(frozen=True)
class Junction:
    """`and` (decided by false) or `or` (decided by true) of parts; make it by `joined`."""

    decisive: bool
    parts: tuple[Formula, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the parts."""
        return frozenset().union(*(part.names for part in self.parts))

    def given(self, values: Values) -> Formula:
        """Return the parts with these values joined; a constant as soon as one decides."""
        if self.names.isdisjoint(values):
            return self
        return joined(self.decisive, [part.given(values) for part in self.parts])

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Return sure bounds where one part decides, or none can."""
        decided, other = (TRUE, FALSE) if self.decisive else (FALSE, TRUE)
        bounds = [part.bounds(ranges) for part in self.parts]
        return decided if decided in bounds else other if set(bounds) == {other} else UNSURE


def applied(operation: Operation, parts: Sequence[Formula]) -> Formula:
    """Return the operation on parts; a constant where all parts are."""
    values = [part.value for part in parts if isinstance(part, Constant)]
    if len(values) == len(parts):
        return Constant(_value(operation, values))
    if operation.is_exact_in_any_order:
        parts = _with_constants_merged(operation, parts)
    return Application(operation, tuple(parts))


def joined(decisive: bool, parts: Sequence[Formula]) -> Formula:
    """Return `or` of parts where true is decisive, `and` where false is; a constant as soon as one part decides."""
    unlike = [part for part in map(_as_truth, parts) if part != Constant(not decisive)]
    if Constant(decisive) in unlike:
        return Constant(decisive)
    still = tuple(part for part in unlike if not isinstance(part, Constant))
    without = [part for part in unlike if isinstance(part, Constant)]
    if still:
        return Junction(decisive, (*still, *without))
    undefined = [part for part in without if isinstance(part.value, Undefined)]
    return (undefined or without or [Constant(not decisive)])[0]


def _as_truth(part: Formula) -> Formula:
    if isinstance(part, Constant) and isinstance(part.value, int | float | str) and not isinstance(part.value, bool):
        return Constant(Undefined(f"{part.value!r} is no truth value"))
    return part


def _with_constants_merged(operation: Operation, parts: Sequence[Formula]) -> Sequence[Formula]:
    """Return the parts with their whole constants made one, so that equal rests are equal."""
    whole = [part.value for part in parts if isinstance(part, Constant) and isinstance(part.value, int)]
    if len(whole) < 2:
        return parts
    others = [part for part in parts if not (isinstance(part, Constant) and isinstance(part.value, int))]
    return [Constant(_value(operation, whole)), *others]


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
