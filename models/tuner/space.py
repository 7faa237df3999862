"""Spaces of configurations."""

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from crosswind.data.errors import InvalidInputError
from crosswind.data.prediction import Floats
from crosswind.data.trial import Configuration
from crosswind.models.tuner.parameter import ENUMERATED_MAX, Domain, domain_from_json

DRAWS_PER_CONFIGURATION = 20  # of a space too big to list, before repeated values make us give up


@dataclass(frozen=True)
class Space:
    """The configurations to choose from: every combination of the parameters' values, or only those `listed`."""

    domains: Mapping[str, Domain]
    listed: tuple[Configuration, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.domains:
            raise InvalidInputError("the space has no parameters, expected at least one")

    @classmethod
    def from_json(cls, value: Mapping[str, Mapping[str, object]]) -> Self:
        """The space of values such as `{"threads": {"kind": "ordinal", "values": [1, 2]}}`.

        Raises: InvalidInputError that names parameter, field, value and expectation.
        """
        if not isinstance(value, Mapping):
            raise InvalidInputError(f"the space is {value!r}, expected an object of parameters")
        return cls({name: _domain(name, each) for name, each in value.items()})

    def as_json(self) -> dict[str, dict[str, object]]:
        """The parameters as plain JSON values; which configurations are listed is not among them."""
        return {name: domain.as_json() for name, domain in self.domains.items()}

    def only(self, configurations: Iterable[Configuration]) -> Self:
        """The same parameters with these configurations alone. Raises: InvalidInputError for one from elsewhere."""
        unique = {self.key(configuration): configuration for configuration in configurations}
        return replace(self, listed=tuple(unique.values()))

    @property
    def size(self) -> float:
        """How many configurations there are; infinite with a real-valued parameter."""
        if self.listed is not None:
            return len(self.listed)
        counts = [domain.values() for domain in self.domains.values()]
        return math.prod(math.inf if values is None else len(values) for values in counts)

    @property
    def is_enumerable(self) -> bool:
        """Whether `configurations` can list the space."""
        return self.size <= ENUMERATED_MAX

    def configurations(self) -> list[Configuration]:
        """Every configuration, the last parameter changing fastest. Raises: InvalidInputError when too many."""
        if self.listed is not None:
            return list(self.listed)
        if not self.is_enumerable:
            raise InvalidInputError(f"the space has {self.size} configurations, expected at most {ENUMERATED_MAX}")
        values = [domain.values() or () for domain in self.domains.values()]
        return [dict(zip(self.domains, each, strict=True)) for each in itertools.product(*values)]

    def random(self, count: int, seed: int) -> list[Configuration]:
        """Distinct random configurations; fewer than `count` where the space has no more."""
        rng = np.random.default_rng(seed)
        if self.is_enumerable:
            everything = self.configurations()
            return [everything[index] for index in rng.permutation(len(everything))[:count]]
        found: dict[str, Configuration] = {}
        for _ in range(DRAWS_PER_CONFIGURATION * count):
            if len(found) == count:
                break
            drawn = {name: domain.sample(rng) for name, domain in self.domains.items()}
            found.setdefault(self.key(drawn), drawn)
        return list(found.values())

    def neighbours(self, configuration: Configuration, count: int, seed: int) -> list[Configuration]:
        """Random configurations that differ in one parameter, `count` draws for each; none where they are listed."""
        if self.listed is not None:
            return []
        rng = np.random.default_rng(seed)
        drawn = [
            {**configuration, name: domain.sample(rng)} for name, domain in self.domains.items() for _ in range(count)
        ]
        return list({self.key(each): each for each in drawn}.values())

    def contains(self, configuration: Configuration) -> bool:
        """Whether the configuration has exactly the parameters, each with an allowed value."""
        return not self._fault(configuration)

    def check(self, configuration: Configuration) -> None:
        """Refuses a configuration from elsewhere. Raises: InvalidInputError with parameter, value and expectation."""
        fault = self._fault(configuration)
        if fault:
            raise InvalidInputError(fault)

    def key(self, configuration: Configuration) -> str:
        """A text that equal configurations share, however their numbers are written. Raises: InvalidInputError."""
        self.check(configuration)
        return json.dumps([_plain(configuration[name]) for name in self.domains])

    def coordinates(self, configurations: Sequence[Configuration]) -> Floats:
        """Every configuration as a point in the unit cube, shape (n_configurations, n_coordinates)."""
        rows = [
            [number for name, domain in self.domains.items() for number in domain.coordinates(each[name])]
            for each in configurations
        ]
        width = sum(domain.n_coordinates for domain in self.domains.values())
        return np.array(rows, dtype=np.float64).reshape(len(rows), width)

    def _fault(self, configuration: Configuration) -> str:
        """What is wrong with a configuration, in words; empty when nothing is."""
        for name, domain in self.domains.items():
            if name not in configuration:
                return f"parameter {name} is missing, expected {domain}"
            if not domain.contains(configuration[name]):
                return f"parameter {name} is {configuration[name]!r}, expected {domain}"
        unknown = [name for name in configuration if name not in self.domains]
        return f"parameter {unknown[0]} is unknown, expected only {', '.join(self.domains)}" if unknown else ""


def _domain(name: object, value: object) -> Domain:
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"a parameter is called {name!r}, expected a name")
    try:
        return domain_from_json(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"parameter {name}: {error}") from error


def _plain(value: object) -> object:
    return float(value) if isinstance(value, int | float) else value
