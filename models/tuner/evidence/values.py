"""The values of a run's configuration in terms of a space: numbers written as text, truth as 0 and 1, other units."""

import math

from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.models.tuner.evidence.units import converted, number_in, split_name
from crosswind.models.tuner.space.parameter import Domain
from crosswind.models.tuner.space.space import Space

TRUE, FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})
NEAR = 1e-9  # relative: conversions of units round


def value_of(name: str, domain: Domain, configuration: Configuration) -> Parameter | None:
    """Return the parameter's value in a run's configuration in terms of the domain.

    None where the configuration does not have it, or has one outside the domain. It may be there under the same name,
    or under one that differs only by its unit (`bucket_bytes` of `bucket_mib`).
    """
    value = configured_value(name, configuration)
    return None if value is None else fitted(name, domain, value)


def configured_value(name: str, configuration: Configuration) -> Parameter | None:
    """Return the value under this name, or converted from the only other name of the same stem; None without either."""
    if name in configuration:
        return configuration[name]
    stem, unit = split_name(name)
    alike = [other for other in configuration if split_name(other)[0] == stem and split_name(other)[1]]
    if unit is None or len(alike) != 1:
        return None
    own = split_name(alike[0])[1]
    number = _number(configuration[alike[0]], own)
    return None if number is None or own is None else converted(number, own, unit)


def fitted(name: str, domain: Domain, value: Parameter) -> Parameter | None:
    """Return the value in terms of the domain: itself, its number, its truth or its text; None where none is in it."""
    number = _number(value, split_name(name)[1])
    return next((reading for reading in _readings(value, number, domain) if domain.contains(reading)), None)


def _readings(value: Parameter, number: float | None, domain: Domain) -> list[Parameter]:
    listed = domain.values() if domain.kind in ("ordinal", "categorical") else None
    if listed is not None:
        return [choice for choice in listed if _is_same(choice, value, number)]
    if domain.kind == "boolean":
        truth = _truth(value)
        return [] if truth is None else [truth]
    if number is None or isinstance(value, bool):
        return []
    nearest = round(number)
    is_whole = math.isclose(number, nearest, rel_tol=NEAR, abs_tol=0)
    return [nearest] if is_whole and domain.kind == "int" else [number]


def _is_same(listed: Parameter, value: Parameter, number: float | None) -> bool:
    if isinstance(listed, bool):
        return _truth(value) is listed
    if isinstance(listed, str):
        return _text(listed) == _text(value)
    if isinstance(value, bool) or number is None:
        return False
    return math.isclose(listed, number, rel_tol=NEAR, abs_tol=0)


def _text(value: Parameter) -> str:
    return str(value).strip().lower()


def _truth(value: Parameter) -> bool | None:
    if _text(value) in TRUE or value == 1:
        return True
    return False if _text(value) in FALSE or value == 0 else None


def _number(value: Parameter, unit: str | None) -> float | None:
    if isinstance(value, str):
        return number_in(value, unit)
    return float(value) if abs(value) < math.inf else None


def covered(space: Space, configuration: Configuration) -> tuple[Configuration, str]:
    """Return the configuration of the space that this one holds, and its fault in words, empty without one.

    Parameters that do not apply there are left out, whether the configuration has them or not.
    """
    fitting: dict[str, Parameter] = {}
    while name := next((name for name in space.domains if _is_due(space, name, fitting)), None):
        if configured_value(name, configuration) is None:
            return {}, f"no parameter {name}"
        value = value_of(name, space.domains[name], configuration)
        if value is None:
            return {}, f"{name} is outside the space"
        fitting[name] = value
    return (fitting, "") if space.contains(fitting) else ({}, "no configuration of the space")


def _is_due(space: Space, name: str, fitting: Configuration) -> bool:
    """Return whether the parameter applies with the values so far and has none yet."""
    return name not in fitting and space.requirements.applies(name, fitting)
