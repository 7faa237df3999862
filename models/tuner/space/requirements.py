"""The requirements on a configuration beyond its parameters' values: conditions, constraints, facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.models.tuner.space import operations as op
from crosswind.models.tuner.space.expression import Expression
from crosswind.models.tuner.space.formula import ABSENT, Application, Constant, Formula, Junction, Undefined, Variable
from crosswind.models.tuner.space.memory_fit import memory_names
from crosswind.models.tuner.space.parameter import Domain
from crosswind.models.tuner.space.valid_points import ValidPoints

CONSTRAINTS_MAX = 200
VERDICTS_MAX = 100_000  # in the cache of a space
CLAIMS = frozenset({op.LESS.name, op.AT_MOST.name, op.EQUAL.name, op.AMONG.name, "fits_memory"})


@dataclass(frozen=True)
class Terms:
    """The names that expressions may use: parameters, facts, and the memory needs of a transformer."""

    domains: Mapping[str, Domain]
    facts: Mapping[str, Parameter]
    memory: Mapping[str, Formula]

    def claim(self, text: object) -> Expression:
        """Return the expression with its facts filled in. Raises: InvalidInputError for unknown names, and no claim."""
        parsed = Expression.parse(text)
        names = (*self.domains, *self.facts, *self.memory)
        unknown = sorted(parsed.names.difference(names))
        if unknown:
            raise InvalidInputError(
                f"expression {parsed.text!r} names {unknown[0]}, expected only {', '.join(names)[:300]}"
            )
        filled = parsed.given(self.memory).given(self.facts)
        if not _is_claim(filled.formula, self.domains):
            raise InvalidInputError(f"expression {parsed.text!r} is neither true nor false, expected a comparison")
        return filled


@dataclass(frozen=True)
class Requirements:
    """Conditions under which parameters apply, and constraints, over parameters and facts.

    A constraint on a parameter that does not apply demands nothing; one without a value (a division by zero) is not
    met. A condition without a value is not met either.
    """

    conditions: Mapping[str, Expression] = field(default_factory=dict)
    constraints: tuple[Expression, ...] = ()
    facts: Mapping[str, Parameter] = field(default_factory=dict)
    transformer: Mapping[str, Parameter] = field(default_factory=dict)
    _verdicts: dict[tuple[str, tuple[object, ...]], bool] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def read(
        cls, domains: Mapping[str, Domain], fields: Mapping[str, object], conditions: Mapping[str, object]
    ) -> Self:
        """Return the requirements of a space's `constraints`, `facts` and `transformer`, and the parameters' `when`.

        Raises: InvalidInputError that names the field, its value and what was expected.
        """
        facts = _scalars(fields.get("facts", {}), "facts")
        transformer = _scalars(fields.get("transformer", {}), "transformer")
        both = sorted(facts.keys() & domains.keys())
        if both:
            raise InvalidInputError(f"facts: {both[0]} is a parameter too, expected another name")
        sizes = {name: size for name, size in transformer.items() if name not in domains}
        terms = Terms(domains, {**sizes, **facts}, memory_names(transformer, {*domains, *facts}))
        read = {name: _condition(name, text, terms) for name, text in conditions.items()}
        constraints = tuple(terms.claim(text) for text in _texts(fields.get("constraints", ())))
        requirements = cls(read, constraints, facts, transformer)
        _check_order(domains, requirements.points(domains))
        return requirements

    def __bool__(self) -> bool:
        return bool(self.conditions or self.constraints)

    def points(self, domains: Mapping[str, Domain]) -> ValidPoints:
        """Return the configurations of the domains that meet the requirements."""
        conditions = {name: condition.formula for name, condition in self.conditions.items()}
        return ValidPoints(domains, conditions, [constraint.formula for constraint in self.constraints])

    def culprit(self, domains: Mapping[str, Domain]) -> str:
        """Return in words the constraint that leaves nothing; alone, or after those before it."""
        for constraint in self.constraints:
            alone = Requirements(self.conditions, (constraint,)).points(domains)
            if alone.count == 0:
                return f"constraint {constraint.text!r} leaves no configuration{self._why(constraint, domains)}"
        for end in range(2, len(self.constraints) + 1):
            if Requirements(self.conditions, self.constraints[:end]).points(domains).count == 0:
                before = ", ".join(repr(constraint.text) for constraint in self.constraints[: end - 1])
                return f"constraint {self.constraints[end - 1].text!r} leaves no configuration beside {before}"
        return f"constraints {', '.join(repr(claim.text) for claim in self.constraints)} leave next to no configuration"

    def applies(self, name: str, configuration: Configuration) -> bool:
        """Return whether the parameter has a value when the others are these."""
        return name not in self.conditions or self._verdict(self.conditions[name], configuration, missing=False)

    def broken(self, configuration: Configuration) -> list[Expression]:
        """Return the constraints that the configuration does not meet."""
        return [
            constraint for constraint in self.constraints if not self._verdict(constraint, configuration, missing=True)
        ]

    @cached_property
    def _needs(self) -> Mapping[str, tuple[str, ...]]:
        expressions = (*self.conditions.values(), *self.constraints)
        return {expression.text: tuple(sorted(expression.names)) for expression in expressions}

    def _verdict(self, expression: Expression, configuration: Configuration, *, missing: bool) -> bool:
        """Return whether it holds; `missing` is the verdict where it needs a parameter that does not apply."""
        names = self._needs[expression.text]
        values = tuple(configuration.get(name, ABSENT) for name in names)
        key = expression.text, values
        if key not in self._verdicts:
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            outcome = expression.outcome(dict(zip(names, values, strict=True)))
            self._verdicts[key] = missing if outcome is ABSENT else outcome is True
        return self._verdicts[key]

    def _why(self, constraint: Expression, domains: Mapping[str, Domain]) -> str:
        """Return in words why it has no value, where it has none at some values."""
        some = {name: (domains[name].values() or (ABSENT,))[0] for name in constraint.names}
        outcome = constraint.outcome(some)
        return f" ({outcome.reason})" if isinstance(outcome, Undefined) else ""


def _condition(name: str, text: object, terms: Terms) -> Expression:
    try:
        return terms.claim(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"parameter {name}: when: {error}") from None


def _is_claim(formula: Formula, domains: Mapping[str, Domain]) -> bool:
    match formula:
        case Constant():
            return isinstance(formula.value, bool)
        case Variable():
            return domains[formula.name].kind == "boolean"
        case Application():
            inner = formula.operation.name == op.NOT.name and _is_claim(formula.parts[0], domains)
            return inner or formula.operation.name in CLAIMS
        case Junction():
            return all(_is_claim(part, domains) for part in formula.parts)
    return False


def _check_order(domains: Mapping[str, Domain], points: ValidPoints) -> None:
    left = [name for name in domains if name not in points.names]
    if left:
        raise InvalidInputError(
            f"parameter {left[0]}: when: it hangs on itself through {', '.join(left)}, expected no circle"
        )


def _texts(value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple) or len(value) > CONSTRAINTS_MAX:
        raise InvalidInputError(f"constraints is {str(value)[:80]!r}, expected a list of up to {CONSTRAINTS_MAX} texts")
    return value


def _scalars(value: object, field_name: str) -> dict[str, Parameter]:
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{field_name} is {value!r}, expected an object of names and values")
    for name, scalar in value.items():
        plain = isinstance(scalar, str) or (isinstance(scalar, int | float) and abs(scalar) <= op.MAGNITUDE_MAX)
        if not isinstance(name, str) or not plain:
            raise InvalidInputError(f"{field_name}: {name} is {scalar!r}, expected a number, a text or a truth value")
    return dict(value)
