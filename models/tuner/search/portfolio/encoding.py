"""Configurations from elsewhere as points of a space, even where their values are not in it."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.models.tuner.space.parameter import Domain, FloatDomain, IntDomain
from crosswind.models.tuner.space.space import Space


def foreign_points(space: Space, configurations: Sequence[Configuration]) -> tuple[Floats, list[int]]:
    """Return points of shape (n_rows, n_coordinates), and the rows of these: those that have every parameter.

    A number beyond the space's values lies next to its neighbours; an unknown category lies nowhere (all 0).
    """
    inside = [space.contains(configuration) for configuration in configurations]
    needed = [name for name in space.domains if name not in space.requirements.conditions]
    rows = [
        i
        for i, configuration in enumerate(configurations)
        if inside[i] or all(name in configuration for name in needed)
    ]
    if all(inside[i] for i in rows):
        return space.coordinates([configurations[i] for i in rows]), rows
    points = [
        space.coordinates([configurations[i]])[0] if inside[i] else np.array(_row(space, configurations[i]))
        for i in rows
    ]
    return np.array(points, dtype=np.float64), rows


def _row(space: Space, configuration: Configuration) -> list[float]:
    """Return a row as `Space.coordinates`: an absent parameter is neutral, and a coordinate of its own says so."""
    row: list[float] = []
    for name, domain in space.domains.items():
        is_there, is_conditional = name in configuration, name in space.requirements.conditions
        neutral = (0.5 if domain.n_coordinates == 1 else 1 / domain.n_coordinates,) * domain.n_coordinates
        row.extend(_place(domain, configuration[name]) if is_there else neutral)
        row.extend((float(is_there),) if is_conditional else ())
    return row


def _place(domain: Domain, value: Parameter) -> tuple[float, ...]:
    if domain.contains(value):
        return domain.coordinates(value)
    if domain.n_coordinates == 1 and isinstance(value, int | float):
        return (_between(domain, float(value)),)
    return (0.0,) * domain.n_coordinates


def _between(domain: Domain, value: float) -> float:
    """Return the place of a number among the numbers of a domain; in the middle where it has none."""
    if isinstance(domain, IntDomain):
        return domain.coordinates(round(min(max(value, domain.low), domain.high)))[0]
    if isinstance(domain, FloatDomain):
        return domain.coordinates(min(max(value, domain.low), domain.high))[0]
    listed = [
        (float(choice), domain.coordinates(choice)[0])
        for choice in domain.values() or ()
        if not isinstance(choice, str)
    ]
    numbers, places = zip(*sorted(listed), strict=True) if listed else ((0.0,), (0.5,))
    return float(np.interp(value, numbers, places))
