"""Overlap of two spaces: the parameters of one that the other has, too, and how many of their values are the same."""

import math

from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.evidence.values import configured_value
from crosswind.models.tuner.space.parameter import Domain, RangeDomain
from crosswind.models.tuner.space.space import Space

HALF = 0.5  # of the values of both, from which on a parameter means the same in both


def missing_in(other: Space, space: Space) -> list[str]:
    """Return the parameters that always apply in the space and that the other one does not have under any unit."""
    held: dict[str, Parameter] = dict.fromkeys(other.domains, 0)
    needed = [name for name in space.domains if name not in space.requirements.conditions]
    return [name for name in needed if configured_value(name, held) is None]


def differing(space: Space, other: Space) -> list[str]:
    """Return the parameters, of either space, of whose values fewer than half are in both; and what binds them."""
    names = list(dict.fromkeys((*space.domains, *other.domains)))
    domains = ((name, space.domains.get(name), other.domains.get(name)) for name in names)
    values = [name for name, own, others in domains if own is None or others is None or common(own, others) < HALF]
    own, others = space.requirements, other.requirements
    bound = {
        "facts": (dict(own.facts), dict(others.facts)),
        "transformer": (dict(own.transformer), dict(others.transformer)),
        "constraints": ({one.text for one in own.constraints}, {one.text for one in others.constraints}),
    }
    return [*values, *(name for name, (mine, theirs) in bound.items() if mine != theirs)]


def common(domain: Domain, other: Domain) -> float:
    """Return the share of both domains' values that is in both, between 0 and 1; of ranges, of their length."""
    mine, theirs = domain.values(), other.values()
    if mine is not None and theirs is not None:
        own, others = set(map(_distinct, mine)), set(map(_distinct, theirs))
        return len(own & others) / len(own | others)
    if not isinstance(domain, RangeDomain) or not isinstance(other, RangeDomain):
        return 0.0
    (low, high), (other_low, other_high) = _ends(domain, domain), _ends(other, domain)
    if high == low or other_high == other_low:
        return float((low, high) == (other_low, other_high))
    return max(min(high, other_high) - max(low, other_low), 0.0) / (max(high, other_high) - min(low, other_low))


def _distinct(value: Parameter) -> tuple[bool, Parameter]:
    """Return the value so that True is not 1."""
    return isinstance(value, bool), value


def _ends(domain: RangeDomain, scale: RangeDomain) -> tuple[float, float]:
    """Return the ends on the other domain's scale."""
    if scale.log and domain.low > 0:
        return math.log(domain.low), math.log(domain.high)
    return float(domain.low), float(domain.high)
