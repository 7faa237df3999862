"""A search space of Ray Tune, and its configurations, in our terms."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ray.tune.search.sample import Categorical, Domain, Float, Integer, LogUniform, Quantized, Uniform
from ray.tune.search.variant_generator import parse_spec_vars

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.models.tuner.space.parameter import domain_from_json
from crosswind.models.tuner.space.space import Space

SEPARATOR = "/"  # between the names of nested parameters, as in Ray's tables
LISTED_MAX = 1_000  # multiples of a step that are listed; of more, the range is searched and values are rounded


@dataclass(frozen=True)
class RayParameter:
    """One parameter: its domain as JSON values, its categories, and the step to which numbers are rounded."""

    domain: Mapping[str, object]
    categories: Sequence[object] = ()
    step: float | None = None

    def outward(self, value: Parameter) -> Any:
        """Return a value of ours as Ray has it."""
        if self.categories:
            return next(theirs for theirs in self.categories if _scalar(theirs, self.categories) == value)
        if self.step is None or isinstance(value, str):
            return value
        rounded = round(value / self.step) * self.step
        return int(rounded) if self.domain["kind"] == "int" else rounded

    def inward(self, value: Any) -> Any:
        """Return a value of Ray's as ours, also one that the parameter does not have."""
        return _scalar(value, self.categories) if self.categories else _plain(value)

    def checked(self, value: Any) -> Parameter:
        """Return a value of Ray's as ours. Raises: InvalidInputError for one that the parameter does not have."""
        ours: Parameter = self.inward(value)
        domain = domain_from_json(self.domain)
        if not domain.contains(ours):
            raise InvalidInputError(f"{value!r:.80}, expected {domain}")
        return ours


@dataclass(frozen=True)
class RaySpace:
    """The parameters of a space of Ray by name; those of nested spaces are joined by slashes."""

    parameters: Mapping[str, RayParameter]

    @property
    def space(self) -> Space:
        """Return the space in our terms."""
        return Space.from_json({name: parameter.domain for name, parameter in self.parameters.items()})

    def outward(self, configuration: Configuration) -> dict[str, Any]:
        """Return a configuration of ours as Ray has it, nested."""
        nested: dict[str, Any] = {}
        for name, value in configuration.items():
            *path, last = name.split(SEPARATOR)
            place = nested
            for part in path:
                place = place.setdefault(part, {})
            place[last] = self.parameters[name].outward(value)
        return nested

    def inward(self, config: Mapping[str, Any]) -> Configuration:
        """Return the tuned part of a configuration of Ray's, nested or flat, whatever its values are."""
        values = {name: _nested(config, name) for name in self.parameters}
        return {name: self.parameters[name].inward(value) for name, value in values.items() if value is not None}

    def checked(self, config: Mapping[str, Any]) -> Configuration:
        """Return the tuned part of a configuration of Ray's, nested or flat.

        Raises: InvalidInputError that names the parameter that is missing or outside the space.
        """
        configuration = {}
        for name, parameter in self.parameters.items():
            try:
                configuration[name] = parameter.checked(_nested(config, name))
            except InvalidInputError as error:
                raise InvalidInputError(f"parameter {name} is {error}") from error
        return configuration


def ray_space(config: Mapping[str, Any]) -> RaySpace:
    """Return the tuned parameters of a space of Ray's; constants are left out.

    Raises: InvalidInputError for a grid, a normal distribution, or values that a function draws.
    """
    _, domains, grids = parse_spec_vars(dict(config))
    for path, _ in grids:
        raise InvalidInputError(f"parameter {SEPARATOR.join(path)} is a grid_search, expected tune.choice")
    return RaySpace({SEPARATOR.join(path): _parameter(SEPARATOR.join(path), domain) for path, domain in domains})


def _parameter(name: str, domain: Domain) -> RayParameter:
    sampler, step = domain.get_sampler(), None
    if isinstance(sampler, Quantized):
        sampler, step = sampler.get_sampler(), sampler.q
    is_log = isinstance(sampler, LogUniform)
    if isinstance(domain, Categorical) and isinstance(sampler, Uniform):
        return _choice(list(domain.categories))
    if not isinstance(domain, Float | Integer) or not (is_log or isinstance(sampler, Uniform)):
        raise InvalidInputError(
            f"parameter {name} is a {type(domain).__name__} drawn by {type(sampler).__name__}, expected tune.uniform, "
            "loguniform, quniform, qloguniform, randint, lograndint, qrandint, qlograndint or choice"
        )
    is_whole = isinstance(domain, Integer)
    low, high = domain.lower, domain.upper - (1 if is_whole and not _has_step(step) else 0)
    if step is not None and _has_step(step) and not is_log and (high - low) / step < LISTED_MAX:
        multiples = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
        return RayParameter({"kind": "ordinal", "values": [_multiple(place, step, is_whole) for place in multiples]})
    kind = "int" if is_whole else "float"
    return RayParameter({"kind": kind, "low": low, "high": high, "log": is_log}, (), step if _has_step(step) else None)


def _has_step(step: float | None) -> bool:
    """Return whether values are multiples; Ray leaves out the upper end of whole numbers with a step of 1, too."""
    return step is not None and step != 1


def _multiple(place: int, step: float, is_whole: bool) -> float:
    """Return a multiple as people write it: 0.3, though 3 * 0.1 is a bit more."""
    return int(place * step) if is_whole else float(f"{place * step:.12g}")


def _choice(categories: list[object]) -> RayParameter:
    scalars = [_scalar(category, categories) for category in categories]
    if {type(value) for value in scalars} == {bool} and len(scalars) == 2:
        return RayParameter({"kind": "boolean"}, categories)
    return RayParameter({"kind": "categorical", "values": scalars}, categories)


def _scalar(category: object, categories: Sequence[object]) -> Parameter:
    """Return a category; as JSON text where one of them is no scalar, or two are equal (1, 1.0 and true)."""
    plain = [_plain(value) for value in categories]
    own: Parameter = _plain(category)
    if all(isinstance(value, str | int | float) for value in plain) and len(set(plain)) == len(plain):
        return own
    return json.dumps(category, default=str)


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy's as Python's."""
    return value.item() if hasattr(value, "item") else value


def _nested(config: Mapping[str, Any], name: str) -> Any:
    """Return the value of this name, flat or nested; None where there is none."""
    if name in config:
        return config[name]
    value: Any = config
    for part in name.split(SEPARATOR):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
