"""The parts of a study's template, and how a study file takes it over."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.space.expression import Expression


@dataclass(frozen=True)
class Template:
    """A common search: its parameters as in a study file, what binds them, and the facts that it must be told."""

    name: str
    description: str
    parameters: Mapping[str, Mapping[str, object]]
    constraints: tuple[str, ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict)  # fact: what it is
    limits: tuple[str, ...] = ()  # on outcomes

    def parameters_with(self, changes: Mapping[str, object]) -> dict[str, object]:
        """The parameters, some replaced, added, or (by None) taken out."""
        merged = {**self.parameters, **changes}
        return {name: value for name, value in merged.items() if value is not None}

    def constraints_for(self, names: frozenset[str], facts: Mapping[str, Parameter]) -> tuple[str, ...]:
        """The constraints that can be said with these names.

        One that names a parameter which was taken out, or a fact beyond `needs` which is not known, is left out.
        Raises: InvalidInputError when a fact is missing that the template needs.
        """
        missing = [fact for fact in self.needs if fact not in facts]
        if missing:
            raise InvalidInputError(
                f"facts: {missing[0]} is missing, which template {self.name} needs: {self.needs[missing[0]]}"
            )
        return tuple(text for text in self.constraints if Expression.parse(text).names <= names)
