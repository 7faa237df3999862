"""The kinds of tunable parameters: what values each may take, and where they lie between 0 and 1."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Parameter

ENUMERATED_MAX = 50_000
NUMBER_MAX = 1e300  # leaves room for differences and squares
WHOLE_MAX = 2**53  # the whole numbers that JSON carries exactly


class Domain(Protocol):
    """The values that one parameter may take."""

    kind: ClassVar[str]

    @property
    def n_coordinates(self) -> int:
        """The number of coordinates that `coordinates` gives."""
        ...

    def contains(self, value: object) -> bool:
        """Return whether the value is allowed."""
        ...

    def values(self) -> tuple[Parameter, ...] | None:
        """Every value in order, None where there are infinitely or very many."""
        ...

    def sample(self, rng: np.random.Generator) -> Parameter:
        """A random value, each as likely (on the logarithm's scale where that is asked for)."""
        ...

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """The value as numbers between 0 and 1, near each other where values are alike."""
        ...

    def places(self, values: Sequence[Parameter]) -> Floats:
        """The coordinates of many values at once, shape (n_values, n_coordinates)."""
        ...

    def as_json(self) -> dict[str, object]:
        """The domain as plain JSON values."""
        ...

    def __str__(self) -> str:
        """The allowed values in words, for messages."""
        ...


@dataclass(frozen=True)
class IntDomain:
    """Whole numbers from low to high, both included."""

    low: int
    high: int
    log: bool = False
    kind: ClassVar[str] = "int"
    n_coordinates: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check_ends(self.low, self.high, log=self.log)

    def contains(self, value: object) -> bool:
        """Return whether it is a whole number in the range."""
        return isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high

    def values(self) -> tuple[Parameter, ...] | None:
        """Every whole number in the range."""
        return tuple(range(self.low, self.high + 1)) if self.high - self.low < ENUMERATED_MAX else None

    def sample(self, rng: np.random.Generator) -> Parameter:
        """A random whole number; with `log`, every factor as likely."""
        if not self.log:
            return int(rng.integers(self.low, self.high, endpoint=True))
        # Half a unit beyond both ends, so that the ends get the share of the numbers that round to them.
        exponent = rng.uniform(math.log(self.low - 0.5), math.log(self.high + 0.5))
        return min(max(round(math.exp(exponent)), self.low), self.high)

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """The place in the range."""
        return (_place(float(value), self.low, self.high, log=self.log),)

    def places(self, values: Sequence[Parameter]) -> Floats:
        """The places in the range."""
        return _places(values, self.low, self.high, log=self.log)

    def as_json(self) -> dict[str, object]:
        """Kind, low, high, log."""
        return {"kind": self.kind, "low": self.low, "high": self.high, "log": self.log}

    def __str__(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class FloatDomain:
    """Numbers from low to high, both included."""

    low: float
    high: float
    log: bool = False
    kind: ClassVar[str] = "float"
    n_coordinates: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check_ends(self.low, self.high, log=self.log)

    def contains(self, value: object) -> bool:
        """Return whether it is a number in the range."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high

    def values(self) -> None:
        """Too many to list."""
        return

    def sample(self, rng: np.random.Generator) -> Parameter:
        """A random number; with `log`, every factor as likely."""
        if not self.log:
            return float(rng.uniform(self.low, self.high))
        number = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        return min(max(number, self.low), self.high)

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """The place in the range."""
        return (_place(float(value), self.low, self.high, log=self.log),)

    def places(self, values: Sequence[Parameter]) -> Floats:
        """The places in the range."""
        return _places(values, self.low, self.high, log=self.log)

    def as_json(self) -> dict[str, object]:
        """Kind, low, high, log."""
        return {"kind": self.kind, "low": self.low, "high": self.high, "log": self.log}

    def __str__(self) -> str:
        return f"a number from {self.low} to {self.high}"


@dataclass(frozen=True)
class OrdinalDomain:
    """Listed values in a meaningful order: neighbours in the list behave alike."""

    listed: tuple[Parameter, ...]
    kind: ClassVar[str] = "ordinal"
    n_coordinates: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check_listed(self.listed)

    def contains(self, value: object) -> bool:
        """Return whether it is listed."""
        return _is_listed(value, self.listed)

    def values(self) -> tuple[Parameter, ...]:
        """The listed values."""
        return self.listed

    def sample(self, rng: np.random.Generator) -> Parameter:
        """A random listed value."""
        return self.listed[rng.integers(len(self.listed))]

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """The rank in the list."""
        return (self.listed.index(value) / max(len(self.listed) - 1, 1),)

    def places(self, values: Sequence[Parameter]) -> Floats:
        """The ranks in the list."""
        ranks = {value: rank for rank, value in enumerate(self.listed)}
        return _column([ranks[value] for value in values]) / max(len(self.listed) - 1, 1)

    def as_json(self) -> dict[str, object]:
        """Kind and values."""
        return {"kind": self.kind, "values": list(self.listed)}

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.listed))}"


@dataclass(frozen=True)
class CategoricalDomain:
    """Listed values without an order."""

    listed: tuple[Parameter, ...]
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        _check_listed(self.listed)

    @property
    def n_coordinates(self) -> int:
        """One a value."""
        return len(self.listed)

    def contains(self, value: object) -> bool:
        """Return whether it is listed."""
        return _is_listed(value, self.listed)

    def values(self) -> tuple[Parameter, ...]:
        """The listed values."""
        return self.listed

    def sample(self, rng: np.random.Generator) -> Parameter:
        """A random listed value."""
        return self.listed[rng.integers(len(self.listed))]

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """One number a value: 1 for this one."""
        return tuple(float(value == choice) for choice in self.listed)

    def places(self, values: Sequence[Parameter]) -> Floats:
        """A row of zeros with a 1 for each value."""
        ranks = {value: rank for rank, value in enumerate(self.listed)}
        return np.eye(len(self.listed))[np.array([ranks[value] for value in values], dtype=np.intp)]

    def as_json(self) -> dict[str, object]:
        """Kind and values."""
        return {"kind": self.kind, "values": list(self.listed)}

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.listed))}"


@dataclass(frozen=True)
class BooleanDomain:
    """False or true."""

    kind: ClassVar[str] = "boolean"
    n_coordinates: ClassVar[int] = 1

    def contains(self, value: object) -> bool:
        """Return whether it is a truth value."""
        return isinstance(value, bool)

    def values(self) -> tuple[Parameter, ...]:
        """False, then true."""
        return (False, True)

    def sample(self, rng: np.random.Generator) -> Parameter:
        """A coin toss."""
        return bool(rng.integers(2))

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """0 or 1."""
        return (float(value),)

    def places(self, values: Sequence[Parameter]) -> Floats:
        """0 or 1 each."""
        return _column(values)

    def as_json(self) -> dict[str, object]:
        """The kind alone."""
        return {"kind": self.kind}

    def __str__(self) -> str:
        return "true or false"


def domain_from_json(value: object) -> Domain:
    """The domain that `as_json` wrote, for example `{"kind": "float", "low": 0.5, "high": 64, "log": true}`.

    Raises: InvalidInputError that names the field, its value and what was expected.
    """
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"it is {value!r}, expected an object with a kind")
    kind = value.get("kind")
    fields = _FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise InvalidInputError(f"kind is {kind!r}, expected one of {', '.join(_FIELDS)}")
    unknown = sorted(str(field) for field in value if field not in fields)
    if unknown:
        raise InvalidInputError(f"a parameter of kind {kind} has no field {unknown[0]!r}, expected {', '.join(fields)}")
    match kind:
        case "int":
            return IntDomain(_whole(value, "low"), _whole(value, "high"), _truth(value, "log"))
        case "float":
            return FloatDomain(_number(value, "low"), _number(value, "high"), _truth(value, "log"))
        case "ordinal":
            return OrdinalDomain(_listed(value))
        case "categorical":
            return CategoricalDomain(_listed(value))
    return BooleanDomain()


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "int": ("kind", "low", "high", "log"),
    "float": ("kind", "low", "high", "log"),
    "ordinal": ("kind", "values"),
    "categorical": ("kind", "values"),
    "boolean": ("kind",),
}


def _place(value: float, low: float, high: float, *, log: bool) -> float:
    if low == high:
        return 0.0
    if log:
        value, low, high = math.log(value), math.log(low), math.log(high)
    return (value - low) / (high - low)


def _places(values: Sequence[Parameter], low: float, high: float, *, log: bool) -> Floats:
    numbers = _column(values)
    if low == high:
        return np.zeros_like(numbers)
    if log:
        numbers, low, high = np.log(numbers), math.log(low), math.log(high)
    return (numbers - low) / (high - low)


def _column(values: Sequence[object]) -> Floats:
    return np.array(values, dtype=np.float64).reshape(len(values), 1)


def _is_listed(value: object, listed: tuple[Parameter, ...]) -> bool:
    # Python takes true for 1; a parameter of 1 and 2 does not.
    try:
        place = listed.index(value)
    except ValueError:
        return False
    return isinstance(listed[place], bool) is isinstance(value, bool)


def _check_ends(low: float, high: float, *, log: bool) -> None:
    if not low <= high:
        raise InvalidInputError(f"low is {low} and high is {high}, expected low <= high")
    if log and low <= 0:
        raise InvalidInputError(f"low is {low}, expected a positive number on a logarithmic scale")


def _check_listed(listed: tuple[Parameter, ...]) -> None:
    if not listed:
        raise InvalidInputError("values is empty, expected at least one value")
    if len(set(listed)) < len(listed):
        raise InvalidInputError(f"values is {list(listed)}, expected no value twice (1, 1.0 and true count as one)")


def _number(value: Mapping[str, object], field: str) -> float:
    number = value.get(field)
    if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < NUMBER_MAX:
        raise InvalidInputError(f"{field} is {number!r}, expected a finite number")
    return float(number)


def _whole(value: Mapping[str, object], field: str) -> int:
    number = _number(value, field)
    if number != int(number) or abs(number) > WHOLE_MAX:
        raise InvalidInputError(f"{field} is {number}, expected a whole number")
    return int(number)


def _truth(value: Mapping[str, object], field: str) -> bool:
    truth = value.get(field, False)
    if not isinstance(truth, bool):
        raise InvalidInputError(f"{field} is {truth!r}, expected true or false")
    return truth


def _listed(value: Mapping[str, object]) -> tuple[Parameter, ...]:
    listed = value.get("values")
    if not isinstance(listed, list | tuple):
        raise InvalidInputError(f"values is {listed!r}, expected a list")
    wrong = [entry for entry in listed if not _is_scalar(entry)]
    if wrong:
        raise InvalidInputError(f"values holds {wrong[0]!r}, expected numbers, texts and truth values")
    return tuple(listed)


def _is_scalar(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int | float) and abs(value) < NUMBER_MAX)
