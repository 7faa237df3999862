"""Configurations as points with one coordinate a parameter, and back, for optimisers of real vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.models.tuner.space.parameter import Domain, FloatDomain, IntDomain, RangeDomain
from crosswind.models.tuner.space.space import Space

MIDDLE = 0.5  # of a parameter that does not apply


@dataclass(frozen=True)
class UnitPoints:
    """The space's configurations in the unit cube, each value of a list with an equal share of its edge."""

    space: Space

    def point(self, configuration: Configuration) -> Floats:
        """Return the point of a configuration, shape (n_parameters,)."""
        return np.array(
            [
                _place(domain, configuration[name]) if name in configuration else MIDDLE
                for name, domain in self.space.domains.items()
            ]
        )

    def configuration(self, point: Floats) -> Configuration:
        """Return the configuration at a point, parameters that do not apply left out; it may break a constraint."""
        places = dict(zip(self.space.domains, point.tolist(), strict=True))
        chosen: dict[str, Parameter] = {}
        for name in self.order:
            if self.space.requirements.applies(name, chosen):
                chosen[name] = _value(self.space.domains[name], places[name])
        return {name: chosen[name] for name in self.space.domains if name in chosen}

    @cached_property
    def order(self) -> Sequence[str]:
        """The parameters, each after those that its condition names."""
        needs = {name: frozenset(condition.names) for name, condition in self.space.requirements.conditions.items()}
        order: list[str] = []
        while len(order) < len(self.space.domains):
            free = [name for name in self.space.domains if name not in order]
            ready = [name for name in free if needs.get(name, frozenset()) & {*free} <= {name}]
            order += ready or free
        return order


def _place(domain: Domain, value: Parameter) -> float:
    if isinstance(domain, RangeDomain) and not _listed(domain):
        return domain.coordinates(value)[0]
    values = _listed(domain)
    return (values.index(value) + 0.5) / len(values)


def _value(domain: Domain, place: float) -> Parameter:
    place = min(max(place, 0.0), 1.0)
    if isinstance(domain, RangeDomain) and not _listed(domain):
        low, high = np.log([domain.low, domain.high]) if domain.log else (domain.low, domain.high)
        number = low + place * (high - low)
        return _within(domain, float(np.exp(number)) if domain.log else float(number))
    values = _listed(domain)
    return values[min(int(place * len(values)), len(values) - 1)]


def _within(domain: RangeDomain, number: float) -> Parameter:
    """Return the number of the range that is nearest."""
    if not isinstance(domain, IntDomain):
        return min(max(number, domain.low), domain.high)
    most = (domain.high - domain.low) // domain.step
    return domain.low + domain.step * min(max(round((number - domain.low) / domain.step), 0), most)


def _listed(domain: Domain) -> tuple[Parameter, ...]:
    """Return the values of a list or of linear whole numbers; none of other ranges."""
    if isinstance(domain, FloatDomain) or (isinstance(domain, IntDomain) and domain.log):
        return ()
    return domain.values() or ()
