"""A parameter as it stands in JSON: its values, when it applies, and what it is."""

from collections.abc import Mapping
from dataclasses import dataclass

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.tuner.space.parameter import Domain, domain_from_json

DESCRIPTION_MAX = 500  # characters


@dataclass(frozen=True)
class ReadParameter:
    """A parameter: its values, the text of its condition (None: always applies), a line that describes it."""

    domain: Domain
    when: object = None
    description: str = ""


def parameter_from_json(name: object, value: object) -> ReadParameter:
    """The parameter of `{"kind": "ordinal", "values": [1, 2], "when": "stage > 1", "description": "..."}`.

    Raises: InvalidInputError that names parameter, field, value and expectation.
    """
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"a parameter is called {name!r}, expected a name")
    beside = {key: value.get(key) for key in ("when", "description")} if isinstance(value, Mapping) else {}
    plain = (
        {key: setting for key, setting in value.items() if key not in beside} if isinstance(value, Mapping) else value
    )
    try:
        return ReadParameter(domain_from_json(plain), beside.get("when"), _description(beside.get("description")))
    except InvalidInputError as error:
        raise InvalidInputError(f"parameter {name}: {error}") from error


def _description(value: object) -> str:
    if value is not None and (not isinstance(value, str) or len(value) > DESCRIPTION_MAX):
        raise InvalidInputError(f"description is {value!r:.80}, expected a text of up to {DESCRIPTION_MAX} characters")
    return value or ""
