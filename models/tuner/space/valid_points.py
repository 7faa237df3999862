"""The configurations that meet all constraints: counted, listed and drawn without trying every combination.

Parameters get their values one after the other, on a decision diagram. A node is what the choices so far leave of the
constraints, so that choices that leave the same formulas lead to the same node, which is expanded only once; it is
dropped as soon as the ranges of the remaining parameters show that some constraint cannot hold any more. The number of
ways on from every node lets us draw all valid configurations with the same probability.
Source: Darwiche and Marquis 2002, "A knowledge compilation map" (counting and sampling on decision diagrams).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.space.formula import ABSENT, Constant, Formula, Missing, Variable
from crosswind.models.tuner.space.operations import FALSE, TRUE, Range
from crosswind.models.tuner.space.parameter import Domain

EXPANDED_MAX = 150_000  # values tried at different nodes, before we no longer count but only draw
HOPELESS_MAX = 25_000  # the same where there are more than COMBINATIONS_MAX combinations
COMBINATIONS_MAX = 1_000_000
TRIES_MAX = 50  # of a search, all from the start
DRAWS_MAX = 2_000  # of real numbers, before a draw is given up
ENDLESS = 10  # values that an endless parameter counts as: draws must not all go where there is none

Values = tuple[Parameter | Missing, ...]


class TooManyNodesError(Exception):
    """The constraints share too little to count the configurations that meet them."""


@dataclass(frozen=True)
class Node:
    """The rest after some choices: open constraints, and open conditions by the parameter's depth in the order."""

    constraints: tuple[Formula, ...] = ()
    conditions: tuple[tuple[int, Formula], ...] = ()

    @cached_property
    def names(self) -> frozenset[str]:
        """The parameters that still matter."""
        return frozenset().union(*(formula.names for formula in (*self.constraints, *(c for _, c in self.conditions))))

    def __hash__(self) -> int:
        """Return the hash of the formulas, computed once: every draw looks its nodes up."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.constraints, self.conditions))


@dataclass
class ValidPoints:
    """The valid configurations of some domains, as tuples of values in the order of `names` (ABSENT among them)."""

    domains: Mapping[str, Domain]
    conditions: Mapping[str, Formula]
    constraints: Sequence[Formula]
    _ways: dict[tuple[int, Node], list[tuple[Parameter | Missing, Node]]] = field(default_factory=dict, init=False)
    _counts: dict[tuple[int, Node], int] = field(default_factory=dict, init=False)
    _sums: dict[tuple[int, Node], Floats] = field(default_factory=dict, init=False)
    _n_expanded: int = field(default=0, init=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters in the order in which they get values.

        After those in their conditions, endless ones last, else as the constraints name them, to meet these early.
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
        """The number of parameters that can be listed and depend only on such."""
        endless = [depth for depth, name in enumerate(self.names) if self._values[name] is None]
        return min(endless, default=len(self.names))

    @cached_property
    def count(self) -> int | None:
        """The number of choices that may be valid, an endless parameter as ENDLESS; None where counting is too hard."""
        try:
            return self._count(0, self._start) if self._start else 0
        except TooManyNodesError:
            self._ways.clear()
            self._counts.clear()
            return None

    def listed(self) -> list[Values]:
        """Return every valid configuration, the last of `names` changing fastest; needs `count`, and none endless."""
        return self._below(0, self._start, {}) if self._start and self.count else []

    def draw(self, rng: np.random.Generator) -> Values | None:
        """Return a random valid configuration; None where the search for one failed.

        All choices that count are equally likely where there is a `count`; endless parameters are drawn until they fit.
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
        """The ends between which the unconditional parameters lie."""
        return {name: _range(domain) for name, domain in self.domains.items() if name not in self.conditions}

    @cached_property
    def _n_expanded_max(self) -> int:
        combinations = math.prod(float(len(values)) for values in self._values.values() if values)
        return EXPANDED_MAX if combinations <= COMBINATIONS_MAX else HOPELESS_MAX

    @cached_property
    def _start(self) -> Node | None:
        conditions = [
            (depth, self.conditions[name]) for depth, name in enumerate(self.names) if name in self.conditions
        ]
        return self._left(self.constraints, tuple(conditions))

    def _left(self, constraints: Sequence[Formula], conditions: tuple[tuple[int, Formula], ...]) -> Node | None:
        """Return the node where these are open; None where one constraint cannot hold."""
        still: dict[Formula, None] = {}
        for constraint in constraints:
            if isinstance(constraint, Constant):
                if constraint.value is not True and constraint.value is not ABSENT:
                    return None
                continue
            bounds = constraint.bounds(self._ranges)
            if bounds == FALSE:
                return None
            if bounds != TRUE:
                still.setdefault(constraint)
        return Node(tuple(still), conditions)

    def _steps(self, depth: int, node: Node) -> list[tuple[Parameter | Missing, Node]]:
        """Return the values of the next parameter with the nodes that they lead to."""
        steps = self._ways.get((depth, node))
        if steps is None:
            steps = self._ways[depth, node] = self._expand(depth, node)
        return steps

    def _expand(self, depth: int, node: Node) -> list[tuple[Parameter | Missing, Node]]:
        name = self.names[depth]
        values = self._open_values(depth, node)
        if name not in node.names:
            past = self._passed(depth, node, {})
            return [(value, past) for value in values] if past else []
        self._n_expanded += len(values)
        if self._n_expanded > self._n_expanded_max:
            raise TooManyNodesError
        steps = ((value, self._passed(depth, node, {name: value})) for value in values)
        return [(value, after) for value, after in steps if after is not None]

    def _open_values(self, depth: int, node: Node) -> Values:
        """Return the values that the parameter may take; ABSENT alone where it does not apply."""
        return (self._values[self.names[depth]] or ()) if self._applies(depth, node) else (ABSENT,)

    def _applies(self, depth: int, node: Node) -> bool:
        """Return whether the choices so far let the parameter apply."""
        condition = dict(node.conditions).get(depth, Constant(True))
        return isinstance(condition, Constant) and condition.value is True

    def _passed(self, depth: int, node: Node, values: Mapping[str, Parameter | Missing]) -> Node | None:
        conditions = tuple((at, condition.given(values)) for at, condition in node.conditions if at != depth)
        if not values:
            return Node(node.constraints, conditions)
        return self._left([constraint.given(values) for constraint in node.constraints], conditions)

    def _count(self, depth: int, node: Node) -> int:
        if depth == self.n_finite:
            return math.prod(ENDLESS for place in range(depth, len(self.names)) if self._applies(place, node))
        if (depth, node) not in self._counts:
            steps = self._steps(depth, node)
            alike = steps and self.names[depth] not in node.names  # all lead to the same node
            ways = [self._count(depth + 1, after) for _, after in (steps[:1] if alike else steps)]
            self._counts[depth, node] = sum(ways) * (len(steps) if alike else 1)
        return self._counts[depth, node]

    def _below(self, depth: int, node: Node, seen: dict[tuple[int, Node], list[Values]]) -> list[Values]:
        """Return the values of the parameters from the depth on that are valid at the node."""
        if depth == self.n_finite:
            return [()]
        if (depth, node) not in seen:
            alive = [(value, after) for value, after in self._steps(depth, node) if self._count(depth + 1, after)]
            seen[depth, node] = [
                (value, *tail) for value, after in alive for tail in self._below(depth + 1, after, seen)
            ]
        return seen[depth, node]

    def _counted_choice(self, rng: np.random.Generator) -> tuple[Values, Node] | None:
        """Return a choice of the listed parameters, all equally likely."""
        node, chosen = self._start, []
        if node is None or not self.count:
            return None
        for depth in range(self.n_finite):
            steps, sums = self._steps(depth, node), self._counted_sums(depth, node)
            at = int(sums.searchsorted(rng.random() * sums[-1], side="right"))
            value, node = steps[min(at, len(steps) - 1)]
            chosen.append(value)
        return tuple(chosen), node

    def _counted_sums(self, depth: int, node: Node) -> Floats:
        """Return for each step from a node how many choices it and those before it lead to."""
        sums = self._sums.get((depth, node))
        if sums is None:
            counts = [float(self._count(depth + 1, after)) for _, after in self._steps(depth, node)]
            sums = self._sums[depth, node] = np.cumsum(counts)
        return sums

    def _searched_choice(self, rng: np.random.Generator) -> tuple[Values, Node] | None:
        """Return a choice of the listed parameters, by trying values in random order and turning back at dead ends.

        The first choices may have been wrong, so that a search that takes long restarts.
        """
        for _ in range(TRIES_MAX):
            self._n_expanded = 0
            try:
                return self._search(0, self._start, (), rng) if self._start else None
            except TooManyNodesError:
                continue
        return None

    def _search(self, depth: int, node: Node, chosen: Values, rng: np.random.Generator) -> tuple[Values, Node] | None:
        if depth == self.n_finite:
            return chosen, node
        values = self._open_values(depth, node)
        for at in rng.permutation(len(values)):
            self._n_expanded += 1
            if self._n_expanded > 20 * len(self.names):
                raise TooManyNodesError
            after = self._passed(depth, node, {self.names[depth]: values[at]})
            point = self._search(depth + 1, after, (*chosen, values[at]), rng) if after else None
            if point:
                return point
        return None

    def _endless(self, chosen: Values, node: Node, rng: np.random.Generator) -> Values | None:
        """Return the choice with random values of the other parameters; None where they do not fit."""
        for depth in range(self.n_finite, len(self.names)):
            name = self.names[depth]
            value = self.domains[name].sample(rng) if self._applies(depth, node) else ABSENT
            after = self._passed(depth, node, {name: value})
            if after is None:
                return None
            chosen, node = (*chosen, value), after
        return chosen


def _in_order(formula: Formula) -> Iterator[str]:
    """Return the names as they appear."""
    if isinstance(formula, Variable):
        yield formula.name
    for part in getattr(formula, "parts", ()):
        yield from _in_order(part)


def _range(domain: Domain) -> Range:
    """Return the least and greatest number of a domain; None where some value is no number."""
    values = domain.values()
    if values is None:
        ends = domain.as_json()
        low, high = ends["low"], ends["high"]
        return (float(low), float(high)) if isinstance(low, int | float) and isinstance(high, int | float) else None
    numbers = [float(value) for value in values if not isinstance(value, str)]
    return (min(numbers), max(numbers)) if len(numbers) == len(values) else None
