"""A trial's configuration on its way into a command line or the environment."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Parameter

# {name}, {name:value where it is absent}, and {{name}} for the text {name} itself
PLACE = re.compile(r"\{\{(?P<literal>[A-Za-z_][\w.-]*)\}\}|\{(?P<name>[A-Za-z_][\w.-]*)(?::(?P<default>[^{}]*))?\}")
VARIABLE = "CROSSWIND_PARAM_"
ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def filled(command: Sequence[str], configuration: Configuration, names: Mapping[str, str]) -> tuple[str, ...]:
    """The command with `{name}` replaced by the parameter's value, or by one of the further `names`.

    `{name:7}` is 7 where the configuration has no such parameter; `{{name}}` stays as `{name}`.
    Raises: InvalidInputError naming the word and what could stand there.
    """
    values = {**names, **{name: text_of(value) for name, value in configuration.items()}}
    return tuple(PLACE.sub(lambda match: _value(match, values), word) for word in command)


def check_names(command: Sequence[str], parameters: Collection[str], further: Collection[str]) -> None:
    """Refuse a command before any trial is asked for. Raises: InvalidInputError for a name that no trial will have."""
    for name in _names_in(command):
        if name not in parameters and name not in further:
            raise _unknown(name, [*parameters, *further])


def _names_in(command: Sequence[str]) -> list[str]:
    """Return the names that a command asks for without a value to take instead."""
    matches = (match for word in command for match in PLACE.finditer(word))
    return [match["name"] for match in matches if match["name"] and match["default"] is None]


def variables(configuration: Configuration, exports: Mapping[str, str]) -> dict[str, str]:
    """The environment that tells the configuration: `CROSSWIND_PARAM_NAME` for each parameter.

    A parameter whose name is that of an environment variable in capitals, as `NCCL_ALGO`, is exported as such; so are
    those that `exports` gives a variable. Raises: InvalidInputError for an export of no parameter.
    """
    exported = {
        VARIABLE + re.sub(r"\W", "_", name, flags=re.ASCII).upper(): value for name, value in configuration.items()
    }
    exported |= {name: value for name, value in configuration.items() if _is_variable(name)}
    exported |= {exports[name]: value for name, value in configuration.items() if name in exports}
    return {name: text_of(value) for name, value in exported.items()}


def exports_of(words: Sequence[str]) -> dict[str, str]:
    """Variables by parameter, of NAME=VARIABLE words. Raises: InvalidInputError."""
    exports: dict[str, str] = {}
    for word in words:
        name, _, variable = word.partition("=")
        if not name or not ENVIRONMENT_NAME.fullmatch(variable):
            raise InvalidInputError(f"--export {word[:80]!r}: expected PARAMETER=VARIABLE")
        exports[name] = variable
    return exports


def text_of(value: Parameter) -> str:
    """A value as programs read it: booleans are `true` and `false`, numbers as in JSON, text as it is."""
    return value if isinstance(value, str) else json.dumps(value)


def nearest(name: str, names: Collection[str], form: str = "%s") -> str:
    """Return `; did you mean ...?` where one of the names is nearly this one, else an empty text."""
    near = get_close_matches(name, list(names), 1)
    return f"; did you mean {form % near[0]}?" if near else ""


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    if match["literal"]:
        return f"{{{match['literal']}}}"
    name = match["name"]
    value = values.get(name, match["default"])
    if value is None:
        raise _unknown(name, values)
    return str(value)


def _unknown(name: str, names: Collection[str]) -> InvalidInputError:
    return InvalidInputError(
        f"command: {{{name}}} is none of {', '.join(sorted(names))}{nearest(name, names, '{%s}')}: "
        f"{{{name}:VALUE}} gives a value for when it is absent, {{{{{name}}}}} is the text itself"
    )


def _is_variable(name: str) -> bool:
    return name.isupper() and "_" in name and ENVIRONMENT_NAME.fullmatch(name) is not None
