"""The configurations that meet all constraints: counted, listed and drawn without trying every combination.

Parameters get their values one after the other. What each choice leaves of the constraints is kept as a formula, and
choices that leave the same formulas lead to the same place, so that a place is looked into only once; a place is given
up as soon as the ranges of the parameters to come show that some constraint cannot hold there any more. Counting the
ways on from every place lets us draw each valid configuration as likely as any other.
Source: Darwiche and Marquis 2002, "A knowledge compilation map" (counting and sampling on decision diagrams).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.space.formula import ABSENT, Formula, Known, Missing, Named
from crosswind.models.tuner.space.operations import FALSE, TRUE, Range
from crosswind.models.tuner.space.parameter import Domain

LOOKS_MAX = 150_000  # values looked at in different places, before we no longer count but only draw
HOPELESS_MAX = 25_000  # the same where there are more than COMBINATIONS_MAX combinations
COMBINATIONS_MAX = 1_000_000
TRIES_MAX = 50  # of a search, each from the start
DRAWS_MAX = 2_000  # of real numbers, before a draw is given up

Values = tuple[Parameter | Missing, ...]


class TooManyPlacesError(Exception):
    """The constraints share too little to count what meets them."""


@dataclass(frozen=True)
class Place:
    """The rest after some choices: open constraints, and open conditions by the parameter's place in the order."""

    constraints: tuple[Formula, ...] = ()
    conditions: tuple[tuple[int, Formula], ...] = ()

    @cached_property
    def names(self) -> frozenset[str]:
        """The parameters that still matter."""
        return frozenset().union(*(formula.names for formula in (*self.constraints, *(c for _, c in self.conditions))))


@dataclass
class ValidPoints:
    """The valid configurations of some domains, as tuples of values in the order of `names` (ABSENT among them)."""

    domains: Mapping[str, Domain]
    conditions: Mapping[str, Formula]
    constraints: Sequence[Formula]
    _ways: dict[tuple[int, Place], list[tuple[Parameter | Missing, Place]]] = field(default_factory=dict, init=False)
    _counts: dict[tuple[int, Place], int] = field(default_factory=dict, init=False)
    _looks: int = field(default=0, init=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters in the order in which they get values.

        After what their conditions name, endless ones last, else as the constraints name them: these are soonest met.
        """
        listed: dict[str, None] = {}
        order = dict.fromkeys(
            [*(name for constraint in self.constraints for name in _in_order(constraint)), *self.domains]
        )
        for may_be_endless in (False, True):
            for _ in order:
                for name in order:
                    needs = self.conditions[name].names if name in self.conditions else frozenset()
                    if (may_be_endless or self._values[name] is not None) and needs <= listed.keys():
                        listed.setdefault(name)
        return tuple(listed)

    @cached_property
    def n_finite(self) -> int:
        """The number of parameters that can be listed, and hang only on such."""
        endless = [place for place, name in enumerate(self.names) if self._values[name] is None]
        return min(endless, default=len(self.names))

    @cached_property
    def count(self) -> int | None:
        """The number of choices of the listed parameters that may be valid; None where that is too hard to say."""
        try:
            return self._count(0, self._start) if self._start else 0
        except TooManyPlacesError:
            self._ways.clear()
            self._counts.clear()
            return None

    def listed(self) -> list[Values]:
        """Every valid configuration, the last of `names` changing fastest; for a known `count` and none endless."""
        return self._below(0, self._start, {}) if self._start and self.count else []

    def draw(self, rng: np.random.Generator) -> Values | None:
        """A random valid configuration; None where none was found.

        Each is as likely as any other where `count` is known; the endless parameters are drawn until all fits.
        """
        for _ in range(DRAWS_MAX if self._start else 0):
            chosen = self._counted_choice(rng) if self.count is not None else self._searched_choice(rng)
            whole = self._endless(*chosen, rng) if chosen else None
            if whole is not None or (chosen is None and self.count is not None):
                return whole
            if self.n_finite == len(self.names):
                return None
        return None

    @cached_property
    def _values(self) -> Mapping[str, tuple[Parameter, ...] | None]:
        return {name: domain.values() for name, domain in self.domains.items()}

    @cached_property
    def _ranges(self) -> Mapping[str, Range]:
        """Between which ends each parameter lies that is always there."""
        return {name: _range(domain) for name, domain in self.domains.items() if name not in self.conditions}

    @cached_property
    def _looks_max(self) -> int:
        combinations = math.prod(float(len(values)) for values in self._values.values() if values)
        return LOOKS_MAX if combinations <= COMBINATIONS_MAX else HOPELESS_MAX

    @cached_property
    def _start(self) -> Place | None:
        conditions = [
            (place, self.conditions[name]) for place, name in enumerate(self.names) if name in self.conditions
        ]
        return self._left(self.constraints, tuple(conditions))

    def _left(self, constraints: Sequence[Formula], conditions: tuple[tuple[int, Formula], ...]) -> Place | None:
        """The place where these are open; None where one constraint cannot hold."""
        still: dict[Formula, None] = {}
        for constraint in constraints:
            if isinstance(constraint, Known):
                if constraint.value is not True and constraint.value is not ABSENT:
                    return None
                continue
            bounds = constraint.bounds(self._ranges)
            if bounds == FALSE:
                return None
            if bounds != TRUE:
                still.setdefault(constraint)
        return Place(tuple(still), conditions)

    def _steps(self, depth: int, place: Place) -> list[tuple[Parameter | Missing, Place]]:
        """Return where the values of the next parameter lead."""
        steps = self._ways.get((depth, place))
        if steps is None:
            steps = self._ways[depth, place] = self._looked(depth, place)
        return steps

    def _looked(self, depth: int, place: Place) -> list[tuple[Parameter | Missing, Place]]:
        name = self.names[depth]
        values = self._open_values(depth, place)
        if name not in place.names:
            past = self._passed(depth, place, {})
            return [(value, past) for value in values] if past else []
        self._looks += len(values)
        if self._looks > self._looks_max:
            raise TooManyPlacesError
        steps = ((value, self._passed(depth, place, {name: value})) for value in values)
        return [(value, after) for value, after in steps if after is not None]

    def _open_values(self, depth: int, place: Place) -> Values:
        """The values that the parameter may take; ABSENT alone where it does not apply."""
        condition = dict(place.conditions).get(depth, Known(True))
        applies = isinstance(condition, Known) and condition.value is True
        return (self._values[self.names[depth]] or ()) if applies else (ABSENT,)

    def _passed(self, depth: int, place: Place, values: Mapping[str, Parameter | Missing]) -> Place | None:
        conditions = tuple((at, condition.given(values)) for at, condition in place.conditions if at != depth)
        if not values:
            return Place(place.constraints, conditions)
        return self._left([constraint.given(values) for constraint in place.constraints], conditions)

    def _count(self, depth: int, place: Place) -> int:
        if depth == self.n_finite:
            return 1
        if (depth, place) not in self._counts:
            steps = self._steps(depth, place)
            alike = steps and self.names[depth] not in place.names  # all lead to the same place
            ways = [self._count(depth + 1, after) for _, after in (steps[:1] if alike else steps)]
            self._counts[depth, place] = sum(ways) * (len(steps) if alike else 1)
        return self._counts[depth, place]

    def _below(self, depth: int, place: Place, seen: dict[tuple[int, Place], list[Values]]) -> list[Values]:
        """The values of the parameters from the depth on that are valid at the place."""
        if depth == self.n_finite:
            return [()]
        if (depth, place) not in seen:
            alive = [(value, after) for value, after in self._steps(depth, place) if self._count(depth + 1, after)]
            seen[depth, place] = [
                (value, *tail) for value, after in alive for tail in self._below(depth + 1, after, seen)
            ]
        return seen[depth, place]

    def _counted_choice(self, rng: np.random.Generator) -> tuple[Values, Place] | None:
        """A choice of the listed parameters, each as likely."""
        place, chosen = self._start, []
        if place is None or not self.count:
            return None
        for depth in range(self.n_finite):
            steps = self._steps(depth, place)
            weights = np.array([float(self._count(depth + 1, after)) for _, after in steps])
            at = int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right"))
            value, place = steps[min(at, len(steps) - 1)]
            chosen.append(value)
        return tuple(chosen), place

    def _searched_choice(self, rng: np.random.Generator) -> tuple[Values, Place] | None:
        """A choice of the listed parameters, found by trying values in random order and turning back at dead ends.

        What was decided first may have been wrong, so that a search which takes long begins anew.
        """
        for _ in range(TRIES_MAX):
            self._looks = 0
            try:
                return self._found(0, self._start, (), rng) if self._start else None
            except TooManyPlacesError:
                continue
        return None

    def _found(self, depth: int, place: Place, chosen: Values, rng: np.random.Generator) -> tuple[Values, Place] | None:
        if depth == self.n_finite:
            return chosen, place
        values = self._open_values(depth, place)
        for at in rng.permutation(len(values)):
            self._looks += 1
            if self._looks > 20 * len(self.names):
                raise TooManyPlacesError
            after = self._passed(depth, place, {self.names[depth]: values[at]})
            point = self._found(depth + 1, after, (*chosen, values[at]), rng) if after else None
            if point:
                return point
        return None

    def _endless(self, chosen: Values, place: Place, rng: np.random.Generator) -> Values | None:
        """The choice with random values of the other parameters; None where they do not fit."""
        for depth in range(self.n_finite, len(self.names)):
            name = self.names[depth]
            condition = dict(place.conditions).get(depth, Known(True))
            applies = isinstance(condition, Known) and condition.value is True
            value = self.domains[name].sample(rng) if applies else ABSENT
            after = self._passed(depth, place, {name: value})
            if after is None:
                return None
            chosen, place = (*chosen, value), after
        return chosen


def _in_order(formula: Formula) -> Iterator[str]:
    """The names as they appear."""
    if isinstance(formula, Named):
        yield formula.name
    for part in getattr(formula, "parts", ()):
        yield from _in_order(part)


def _range(domain: Domain) -> Range:
    """The least and greatest number of a domain; None where some value is none."""
    values = domain.values()
    if values is None:
        ends = domain.as_json()
        low, high = ends["low"], ends["high"]
        return (float(low), float(high)) if isinstance(low, int | float) and isinstance(high, int | float) else None
    numbers = [float(value) for value in values if not isinstance(value, str)]
    return (min(numbers), max(numbers)) if len(numbers) == len(values) else None
