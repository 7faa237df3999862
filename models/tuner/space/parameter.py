"""The kinds of tunable parameters: their values, and the coordinates of these between 0 and 1."""

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
DESCRIPTION_MAX = 500  # characters
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
        """Return every value in order, None where there are infinitely or very many."""
        ...

    def sample(self, rng: np.random.Generator) -> Parameter:
        """Return a random value, all equally likely, on a logarithmic scale those in equal factors."""
        ...

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """Return the value as numbers between 0 and 1, close for values that are alike."""
        ...

    def places(self, values: Sequence[Parameter]) -> Floats:
        """Return the coordinates of many values at once, shape (n_values, n_coordinates)."""
        ...

    def as_json(self) -> dict[str, object]:
        """Return the domain as plain JSON values."""
        ...

    def __str__(self) -> str:
        """Return the allowed values in words, for messages."""
        ...


@dataclass(frozen=True)
class RangeDomain:
    """Numbers from low to high, both included; the kinds differ in which."""

    low: float
    high: float
    log: bool = False
    kind: ClassVar[str]
    n_coordinates: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InvalidInputError(f"low is {self.low} and high is {self.high}, expected low <= high")
        if self.log and self.low <= 0:
            raise InvalidInputError(f"low is {self.low}, expected a positive number on a logarithmic scale")

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """Return the place in the range."""
        number, low, high = float(value), self.low, self.high
        if low == high:
            return (0.0,)
        if self.log:
            number, low, high = math.log(number), math.log(low), math.log(high)
        return ((number - low) / (high - low),)

    def places(self, values: Sequence[Parameter]) -> Floats:
        """Return the places in the range."""
        numbers, low, high = _column(values), self.low, self.high
        if low == high:
            return np.zeros_like(numbers)
        if self.log:
            numbers, low, high = np.log(numbers), math.log(low), math.log(high)
        return (numbers - low) / (high - low)

    def as_json(self) -> dict[str, object]:
        """Return kind, low, high, log."""
        return {"kind": self.kind, "low": self.low, "high": self.high, "log": self.log}


@dataclass(frozen=True)
class IntDomain(RangeDomain):
    """Whole numbers from low to high, both included, or every `step`-th of them from low on."""

    low: int
    high: int
    step: int = 1
    kind: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step < 1:
            raise InvalidInputError(f"step is {self.step}, expected a whole number of at least 1")
        if self.log and self.step > 1:
            raise InvalidInputError(f"step is {self.step}, expected none on a logarithmic scale: list the values")

    def contains(self, value: object) -> bool:
        """Return whether it is one of these numbers."""
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return is_whole and self.low <= value <= self.high and (value - self.low) % self.step == 0  # type: ignore[operator]

    def values(self) -> tuple[Parameter, ...] | None:
        """Return every number; None where there are too many."""
        numbers = range(self.low, self.high + 1, self.step)
        return tuple(numbers) if len(numbers) <= ENUMERATED_MAX else None

    def sample(self, rng: np.random.Generator) -> Parameter:
        """Return a random one of these numbers; with `log`, every factor as likely."""
        if not self.log:
            return self.low + self.step * int(rng.integers(0, (self.high - self.low) // self.step, endpoint=True))
        # Half a unit beyond both ends, so that the ends get the share of the numbers that round to them.
        exponent = rng.uniform(math.log(self.low - 0.5), math.log(self.high + 0.5))
        return min(max(round(math.exp(exponent)), self.low), self.high)

    def as_json(self) -> dict[str, object]:
        """Return kind, low, high, log, and a step that is not 1."""
        return {**super().as_json(), **({"step": self.step} if self.step > 1 else {})}

    def __str__(self) -> str:
        step = f" in steps of {self.step}" if self.step > 1 else ""
        return f"a whole number from {self.low} to {self.high}{step}"


@dataclass(frozen=True)
class FloatDomain(RangeDomain):
    """Numbers from low to high, both included."""

    kind: ClassVar[str] = "float"

    def contains(self, value: object) -> bool:
        """Return whether it is a number in the range."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high

    def values(self) -> None:
        """Return None: too many to list."""
        return

    def sample(self, rng: np.random.Generator) -> Parameter:
        """Return a random number; with `log`, every factor as likely."""
        if not self.log:
            return float(rng.uniform(self.low, self.high))
        number = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        return min(max(number, self.low), self.high)

    def __str__(self) -> str:
        return f"a number from {self.low} to {self.high}"


@dataclass(frozen=True)
class ListedDomain:
    """Listed values; the kinds differ in whether their order means something."""

    listed: tuple[Parameter, ...]
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not self.listed:
            raise InvalidInputError("values is empty, expected at least one value")
        if len(set(self.listed)) < len(self.listed):
            values = list(self.listed)
            raise InvalidInputError(f"values is {values}, expected no value twice (1, 1.0 and true count as one)")

    def contains(self, value: object) -> bool:
        """Return whether it is listed."""
        # Python takes true for 1; a parameter of 1 and 2 does not.
        try:
            place = self.listed.index(value)
        except ValueError:
            return False
        return isinstance(self.listed[place], bool) is isinstance(value, bool)

    def values(self) -> tuple[Parameter, ...]:
        """Return the listed values."""
        return self.listed

    def sample(self, rng: np.random.Generator) -> Parameter:
        """Return a random listed value."""
        return self.listed[rng.integers(len(self.listed))]

    def as_json(self) -> dict[str, object]:
        """Return kind and values."""
        return {"kind": self.kind, "values": list(self.listed)}

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.listed))}"


@dataclass(frozen=True)
class OrdinalDomain(ListedDomain):
    """Listed values in a meaningful order: neighbours in the list behave alike."""

    kind: ClassVar[str] = "ordinal"
    n_coordinates: ClassVar[int] = 1

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """Return the rank in the list."""
        return (self.listed.index(value) / max(len(self.listed) - 1, 1),)

    def places(self, values: Sequence[Parameter]) -> Floats:
        """Return the ranks in the list."""
        ranks = {value: rank for rank, value in enumerate(self.listed)}
        return _column([ranks[value] for value in values]) / max(len(self.listed) - 1, 1)


@dataclass(frozen=True)
class CategoricalDomain(ListedDomain):
    """Listed values without an order."""

    kind: ClassVar[str] = "categorical"

    @property
    def n_coordinates(self) -> int:
        """One a value."""
        return len(self.listed)

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """Return one number a value: 1 for this one."""
        return tuple(float(value == choice) for choice in self.listed)

    def places(self, values: Sequence[Parameter]) -> Floats:
        """Return a row of zeros with a 1 for each value."""
        ranks = {value: rank for rank, value in enumerate(self.listed)}
        return np.eye(len(self.listed))[np.array([ranks[value] for value in values], dtype=np.intp)]


@dataclass(frozen=True)
class BooleanDomain:
    """False or true."""

    kind: ClassVar[str] = "boolean"
    n_coordinates: ClassVar[int] = 1

    def contains(self, value: object) -> bool:
        """Return whether it is a truth value."""
        return isinstance(value, bool)

    def values(self) -> tuple[Parameter, ...]:
        """Return false, then true."""
        return (False, True)

    def sample(self, rng: np.random.Generator) -> Parameter:
        """Return false or true, equally likely."""
        return bool(rng.integers(2))

    def coordinates(self, value: Parameter) -> tuple[float, ...]:
        """Return 0 or 1."""
        return (float(value),)

    def places(self, values: Sequence[Parameter]) -> Floats:
        """Return 0 or 1 for each value."""
        return _column(values)

    def as_json(self) -> dict[str, object]:
        """Return the kind alone."""
        return {"kind": self.kind}

    def __str__(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class ReadParameter:
    """A parameter: its values, the text of its condition (None: always applies), a line that describes it."""

    domain: Domain
    when: object = None
    description: str = ""


def parameter_from_json(name: object, value: object) -> ReadParameter:
    """Return the parameter of `{"kind": "ordinal", "values": [1, 2], "when": "stage > 1", "description": "..."}`.

    Raises: InvalidInputError that names parameter, field, value and expectation.
    """
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"a parameter is called {name!r}, expected a name")
    fields = dict(value) if isinstance(value, Mapping) else {}
    when, description = fields.pop("when", None), fields.pop("description", None)
    try:
        domain = domain_from_json(fields if isinstance(value, Mapping) else value)
        return ReadParameter(domain, when, _description(description))
    except InvalidInputError as error:
        raise InvalidInputError(f"parameter {name}: {error}") from error


def domain_from_json(value: object) -> Domain:
    """Return the domain that `as_json` wrote, for example `{"kind": "float", "low": 0.5, "high": 64, "log": true}`.

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
            step = _whole(value, "step") if "step" in value else 1
            return IntDomain(_whole(value, "low"), _whole(value, "high"), _truth(value, "log"), step)
        case "float":
            return FloatDomain(_number(value, "low"), _number(value, "high"), _truth(value, "log"))
        case "ordinal":
            return OrdinalDomain(_listed(value))
        case "categorical":
            return CategoricalDomain(_listed(value))
    return BooleanDomain()


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "int": ("kind", "low", "high", "log", "step"),
    "float": ("kind", "low", "high", "log"),
    "ordinal": ("kind", "values"),
    "categorical": ("kind", "values"),
    "boolean": ("kind",),
}


def _description(value: object) -> str:
    if value is not None and (not isinstance(value, str) or len(value) > DESCRIPTION_MAX):
        raise InvalidInputError(f"description is {value!r:.80}, expected a text of up to {DESCRIPTION_MAX} characters")
    return value or ""


def _column(values: Sequence[object]) -> Floats:
    return np.array(values, dtype=np.float64).reshape(len(values), 1)


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
