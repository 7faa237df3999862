"""A trial's configuration as a file that a program reads: JSON, YAML or TOML by the file's name."""

import json
from collections.abc import Callable
from pathlib import Path

from crosswind.data.files import published
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.trial import Configuration, Parameter

BASIC_PLANE = 0xFFFF


def write_config(path: Path, configuration: Configuration) -> None:
    """Writes the file; a reader finds it whole or not at all. Raises: InvalidInputError, UnavailableError."""
    content = config_text(path.suffix, configuration)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with published(path, is_durable=False) as file:
            file.write(content.encode())
    except OSError as error:
        raise UnavailableError(f"--config-file {path}: {error.strerror}") from error


def config_text(suffix: str, configuration: Configuration) -> str:
    """The configuration in the format of a file with this ending. Raises: InvalidInputError."""
    written = FORMATS.get(suffix.lower())
    if written is None:
        raise InvalidInputError(f"--config-file ends in {suffix!r}, expected one of {', '.join(FORMATS)}")
    return written(configuration)


def _json(configuration: Configuration) -> str:
    return json.dumps(dict(configuration), indent=2) + "\n"


def _lines(separator: str) -> Callable[[Configuration], str]:
    """JSON's strings, booleans and integers mean the same in YAML and TOML."""
    return lambda configuration: "".join(
        f"{_scalar(name)}{separator}{_scalar(value)}\n" for name, value in configuration.items()
    )


def _scalar(value: Parameter) -> str:
    """The value; YAML 1.1 takes 1e-05 for text, and wants 1.0e-05."""
    text = "".join(map(_letter, json.dumps(value, ensure_ascii=False)))
    mantissa, exponent, power = text.partition("e")
    if isinstance(value, float) and exponent and "." not in mantissa:
        return f"{mantissa}.0e{power}"
    return text


def _letter(letter: str) -> str:
    """Return the letter as both formats escape it, where neither takes it verbatim."""
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) <= BASIC_PLANE else f"\\U{ord(letter):08x}"


FORMATS: dict[str, Callable[[Configuration], str]] = {
    ".json": _json,
    ".yaml": _lines(": "),
    ".yml": _lines(": "),
    ".toml": _lines(" = "),
}
