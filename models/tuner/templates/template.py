"""Templates of common searches, as study files take them over."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Parameter
from crosswind.models.tuner.space.expression import Expression


@dataclass(frozen=True)
class Template:
    """A common search.

    Args:
        name: As study files call it.
        description: One line for people.
        parameters: As in a study file.
        constraints: That bind the parameters.
        needs: Facts that a study file must give, by name what each is.
        limits: On outcomes.
    """

    name: str
    description: str
    parameters: Mapping[str, Mapping[str, object]]
    constraints: tuple[str, ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[str, ...] = ()

    def parameters_with(self, changes: Mapping[str, object]) -> dict[str, object]:
        """Return the parameters, some replaced, added, or (by None) removed."""
        merged = {**self.parameters, **changes}
        return {name: value for name, value in merged.items() if value is not None}

    def constraints_for(self, names: frozenset[str], facts: Mapping[str, Parameter]) -> tuple[str, ...]:
        """Return the constraints that need only these names.

        Left out are those with a removed parameter, or a fact beyond `needs` that is missing.
        Raises: InvalidInputError when a fact is missing that the template needs.
        """
        missing = [fact for fact in self.needs if fact not in facts]
        if missing:
            raise InvalidInputError(
                f"facts: {missing[0]} is missing, which template {self.name} needs: {self.needs[missing[0]]}"
            )
        return tuple(text for text in self.constraints if Expression.parse(text).names <= names)
