"""Spaces of configurations."""

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Self

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Parameter, is_wrapped
from crosswind.models.tuner.space.formula import ABSENT, Missing
from crosswind.models.tuner.space.parameter import ENUMERATED_MAX, Domain, parameter_from_json
from crosswind.models.tuner.space.requirements import Requirements
from crosswind.models.tuner.space.valid_points import ValidPoints, Values

DRAWS_PER_CONFIGURATION = 20  # of a space too big to list, before we give up on repeated ones
SPACES_CACHED = 16
KEY_PARTS_MAX = 100_000
REPAIRS_MAX = 50  # values of a second parameter tried to keep a neighbour valid
NO_PARAMETERS = "the space has no parameters, expected at least one"
WRAPPED = ("parameters", "constraints", "facts", "transformer")


@dataclass(frozen=True)
class Space:
    """The configurations to choose from: the combinations that meet the requirements, or only those `listed`.

    Args:
        domains: The values of each parameter.
        listed: The only configurations, where not all combinations are to choose from.
        requirements: Conditions under which parameters apply, and constraints.
        descriptions: Of the parameters, for people.

    Raises:
        InvalidInputError: Without a parameter.

    Example:
        >>> parameters = {"dp": {"kind": "ordinal", "values": [1, 2, 4]}, "tp": {"kind": "ordinal", "values": [1, 2]}}
        >>> space = Space.from_json({"parameters": parameters, "constraints": ["dp * tp == 4"]})
        >>> space.configurations()
        [{'dp': 2, 'tp': 2}, {'dp': 4, 'tp': 1}]
    """

    domains: Mapping[str, Domain]
    listed: tuple[Configuration, ...] | None = field(default=None, repr=False)
    requirements: Requirements = field(default_factory=Requirements)
    descriptions: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.domains:
            raise InvalidInputError(NO_PARAMETERS)

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """Return the space of values such as `{"threads": {"kind": "ordinal", "values": [1, 2]}}`.

        A parameter may carry a `description`, and `when`: the condition under which it applies; it is absent from
        configurations otherwise. With constraints it is `{"parameters": {...}, "constraints": ["dp * tp == ranks"],
        "facts": {"ranks": 8}}`; a `transformer` lets constraints say `fits_memory` (see memory_fit.py).

        Raises: InvalidInputError that names parameter, field, value and expectation; or the constraint that leaves no
        configuration.
        """
        if not isinstance(value, Mapping):
            raise InvalidInputError(f"the space is {value!r}, expected an object of parameters")
        try:
            text = json.dumps(value)
        except (TypeError, ValueError):
            return cls._read(value)
        if cls is not Space or not all(isinstance(name, str) for name in value):  # JSON would make a text of a number
            return cls._read(value)
        space = _cached_space(text)
        assert isinstance(space, cls)  # noqa: S101
        return space

    @classmethod
    def _read(cls, value: Mapping[str, object]) -> Self:
        fields = value if is_wrapped(value) else {"parameters": value}
        unknown = sorted(str(name) for name in fields if name not in WRAPPED)
        if unknown:
            raise InvalidInputError(f"the space has no field {unknown[0]!r}, expected {', '.join(WRAPPED)}")
        parameters = fields["parameters"]
        if not isinstance(parameters, Mapping):
            raise InvalidInputError(f"parameters is {parameters!r}, expected an object of parameters")
        if not parameters:
            raise InvalidInputError(NO_PARAMETERS)
        read = {name: parameter_from_json(name, definition) for name, definition in parameters.items()}
        domains = {name: parameter.domain for name, parameter in read.items()}
        conditions = {name: parameter.when for name, parameter in read.items() if parameter.when is not None}
        requirements = Requirements.read(domains, fields, conditions)
        descriptions = {name: parameter.description for name, parameter in read.items() if parameter.description}
        space = cls(domains, None, requirements, descriptions)
        if requirements and space._points.count == 0:
            raise InvalidInputError(requirements.culprit(domains))
        return space

    def as_json(self) -> dict[str, object]:
        """Return the space as plain JSON values that `from_json` reads, without the listed configurations."""
        parameters = {name: self._parameter_json(name, domain) for name, domain in self.domains.items()}
        further: dict[str, object] = {
            "constraints": [constraint.text for constraint in self.requirements.constraints],
            "facts": dict(self.requirements.facts),
            "transformer": dict(self.requirements.transformer),
        }
        given = {name: content for name, content in further.items() if content}
        return {"parameters": parameters, **given} if given else {**parameters}

    def only(self, configurations: Iterable[Configuration]) -> Self:
        """Return the space of these configurations alone. Raises: InvalidInputError for one from elsewhere."""
        unique = {self.key(configuration): configuration for configuration in configurations}
        return replace(self, listed=tuple(unique.values()))

    @property
    def size(self) -> float:
        """The number of configurations that there are; infinite with a real-valued parameter.

        An upper bound, all combinations, where the constraints are too tangled for counting.
        """
        if self.listed is not None:
            return len(self.listed)
        if self.requirements and self._points.n_finite == len(self.domains) and self._points.count is not None:
            return self._points.count
        counts = [domain.values() for domain in self.domains.values()]
        return math.prod(math.inf if values is None else len(values) for values in counts)

    @property
    def is_enumerable(self) -> bool:
        """Return whether `configurations` can list the space."""
        return self.size <= ENUMERATED_MAX

    def configurations(self) -> list[Configuration]:
        """Return every configuration; without requirements, the last parameter changing fastest.

        Raises: InvalidInputError when there are too many.
        """
        if self.listed is not None:
            return list(self.listed)
        if not self.is_enumerable:
            raise InvalidInputError(f"the space has {self.size} configurations, expected at most {ENUMERATED_MAX}")
        return list(self._all)

    def random(self, count: int, seed: int) -> list[Configuration]:
        """Return distinct random configurations; fewer than `count` where the space has no more.

        Raises: InvalidInputError when no draw meets the constraints.
        """
        rng = np.random.default_rng(seed)
        if self.is_enumerable:
            everything = self.configurations()
            return [everything[index] for index in rng.permutation(len(everything))[:count]]
        distinct: dict[str, Configuration] = {}
        for _ in range(DRAWS_PER_CONFIGURATION * count):
            drawn = self._drawn(rng) if len(distinct) < count else None
            if drawn is None:
                break
            distinct.setdefault(self.key(drawn), drawn)
        if not distinct and count > 0:
            raise InvalidInputError(self.requirements.culprit(self.domains))
        return list(distinct.values())

    def neighbours(self, configuration: Configuration, count: int, seed: int) -> list[Configuration]:
        """Return random configurations that differ in one parameter, `count` draws for each; none of a listed space.

        Where constraints bind a parameter to others, one of these changes with it (dp twice, tp half as much).
        """
        if self.listed is not None:
            return []
        rng = np.random.default_rng(seed)
        drawn = [
            self._adapted({**configuration, name: domain.sample(rng)}, name, rng)
            for name, domain in self.domains.items()
            for _ in range(count)
            if not self.requirements or self.requirements.applies(name, configuration)
        ]
        return list({self.key(neighbour): neighbour for neighbour in drawn if neighbour is not None}.values())

    def contains(self, configuration: Configuration) -> bool:
        """Return whether it has exactly the parameters that apply, with allowed values, and meets the constraints."""
        return not self._fault(configuration)

    def check(self, configuration: Configuration) -> None:
        """Refuse a configuration from elsewhere. Raises: InvalidInputError with parameter, value and expectation."""
        fault = self._fault(configuration)
        if fault:
            raise InvalidInputError(fault)

    def key(self, configuration: Configuration) -> str:
        """Return a text that equal configurations share, 1 and 1.0 alike. Raises: InvalidInputError."""
        parts = self._cached_key_parts(configuration)
        if parts is None:
            self.check(configuration)
        elif self.requirements and self._unmet(configuration):
            raise InvalidInputError(self._unmet(configuration))
        return self._key(configuration) if parts is None else f"[{', '.join(parts)}]"

    def coordinates(self, configurations: Sequence[Configuration]) -> Floats:
        """Return the configurations as points in the unit cube, shape (n_configurations, n_coordinates).

        A conditional parameter has one coordinate more, 1 where it applies; where it does not, the others are neutral:
        the middle of the range, or the same for each category.
        """
        columns = [self._column(name, domain, configurations) for name, domain in self.domains.items()]
        return np.hstack(columns)

    @cached_property
    def _key_parts(self) -> dict[tuple[str, type, object], str]:
        return {}

    @cached_property
    def _points(self) -> ValidPoints:
        return self.requirements.points(self.domains)

    @cached_property
    def _all(self) -> tuple[Configuration, ...]:
        if not self.requirements:
            values = [domain.values() or () for domain in self.domains.values()]
            return tuple(
                dict(zip(self.domains, combination, strict=True)) for combination in itertools.product(*values)
            )
        return tuple(self._named(point) for point in self._points.listed())

    def _named(self, values: Values) -> Configuration:
        """Return the configuration of values in the order of the valid points."""
        by_name = dict(zip(self._points.names, values, strict=True))
        return {name: value for name in self.domains if not isinstance(value := by_name[name], Missing)}

    def _drawn(self, rng: np.random.Generator) -> Configuration | None:
        if not self.requirements:
            return {name: domain.sample(rng) for name, domain in self.domains.items()}
        values = self._points.draw(rng)
        return None if values is None else self._named(values)

    def _adapted(self, changed: dict[str, Parameter], name: str, rng: np.random.Generator) -> Configuration | None:
        """Return the changed configuration, made valid by changing one other parameter; None where that fails."""
        if not self.requirements:
            return changed
        self._settle(changed, rng)
        broken = self.requirements.broken(changed)
        others = sorted({other for constraint in broken for other in constraint.names if other in changed} - {name})
        for other in (others[at] for at in rng.permutation(len(others))):
            values = self.domains[other].values() or ()
            for at in rng.permutation(len(values))[:REPAIRS_MAX]:
                repaired = {**changed, other: values[at]}
                self._settle(repaired, rng)
                if not self._fault(repaired):
                    return repaired
        return None if broken or self._fault(changed) else changed

    def settled(self, configuration: Configuration, seed: int) -> Configuration:
        """Return the configuration without the parameters that do not apply, and with random values of missing ones."""
        settled = {name: value for name, value in configuration.items() if name in self.domains}
        self._settle(settled, np.random.default_rng(seed))
        return settled

    def _settle(self, configuration: dict[str, Parameter], rng: np.random.Generator) -> None:
        """Remove the parameters that do not apply, and draw a value for those that now do."""
        for name in self._points.names:
            if not self.requirements.applies(name, configuration):
                configuration.pop(name, None)
            elif name not in configuration:
                configuration[name] = self.domains[name].sample(rng)

    def _key(self, configuration: Configuration) -> str:
        """Return the key of a valid configuration, and cache its parts for the next keys."""
        if len(self._key_parts) > KEY_PARTS_MAX:
            self._key_parts.clear()
        values = [(name, configuration.get(name, ABSENT)) for name in self.domains]
        parts = [json.dumps(None if isinstance(value, Missing) else _plain(value)) for _, value in values]
        self._key_parts.update(
            {(name, type(value), value): part for (name, value), part in zip(values, parts, strict=True)}
        )
        return f"[{', '.join(parts)}]"

    def _cached_key_parts(self, configuration: Configuration) -> list[str] | None:
        """Return the parts of the key where every value has been in a key before, and is thus allowed."""
        parts = self._key_parts
        try:
            entries = [
                parts.get((name, type(value := configuration.get(name, ABSENT)), value)) for name in self.domains
            ]
        except TypeError:  # a value without a hash is not in the space
            return None
        present = [part for part in entries if part is not None]
        same = len(configuration) == len(entries) - sum(part == "null" for part in present)
        return present if same and len(present) == len(entries) else None

    def _column(self, name: str, domain: Domain, configurations: Sequence[Configuration]) -> Floats:
        if name not in self.requirements.conditions:
            return domain.places([configuration[name] for configuration in configurations])
        applies = np.array([name in configuration for configuration in configurations], dtype=bool)
        neutral = 0.5 if domain.n_coordinates == 1 else 1 / domain.n_coordinates
        column = np.full((len(configurations), domain.n_coordinates), neutral)
        column[applies] = domain.places(
            [configuration[name] for configuration in configurations if name in configuration]
        )
        return np.hstack([column, applies[:, None]])

    def _parameter_json(self, name: str, domain: Domain) -> dict[str, object]:
        fields = domain.as_json()
        if name in self.requirements.conditions:
            fields["when"] = self.requirements.conditions[name].text
        if name in self.descriptions:
            fields["description"] = self.descriptions[name]
        return fields

    def _fault(self, configuration: Configuration) -> str:
        """Return in words what is wrong with a configuration; empty when nothing is."""
        conditions = self.requirements.conditions
        for name, domain in self.domains.items():
            if name in configuration and not domain.contains(configuration[name]):
                return f"parameter {name} is {configuration[name]!r}, expected {domain}"
            if name not in configuration and name not in conditions:
                return f"parameter {name} is missing, expected {domain}"
        if len(configuration) > len(self.domains) or not configuration.keys() <= self.domains.keys():
            unknown = next(name for name in configuration if name not in self.domains)
            return f"parameter {unknown} is unknown, expected only {', '.join(self.domains)}"
        return self._unmet(configuration) if self.requirements else ""

    def _unmet(self, configuration: Configuration) -> str:
        """Return in words the requirement that a configuration of allowed values does not meet; empty without one."""
        for name, condition in self.requirements.conditions.items():
            applies = self.requirements.applies(name, configuration)
            if applies and name not in configuration:
                return f"parameter {name} is missing, expected {self.domains[name]} when {condition}"
            if name in configuration and not applies:
                return f"parameter {name} is {configuration[name]!r}, expected none: it applies only when {condition}"
        broken = self.requirements.broken(configuration)
        if not broken:
            return ""
        assignments = ", ".join(
            f"{name} = {configuration[name]!r}" for name in sorted(broken[0].names) if name in configuration
        )
        return f"the configuration does not meet {broken[0].text!r} with {assignments}, expected one that does"


@lru_cache(maxsize=SPACES_CACHED)
def _cached_space(text: str) -> Space:
    """Read a space once: listing its valid configurations takes time."""
    return Space._read(json.loads(text))


def _plain(value: object) -> object:
    return float(value) if isinstance(value, int | float) else value
