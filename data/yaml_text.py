"""YAML as its core schema of version 1.2 reads it, in which `1e-5` is a number, and `on`, `off`, `yes`, `no` are texts.

PyYAML reads version 1.1, where `1e-5` is a text, `off` is false, `017` is 15, `1:30` is 90, and `2026-01-02` is a date.
Underscores between digits, as in `1_000`, are of version 1.1, and no harm. Source: YAML 1.2.2, section 10.3.2.
"""

import re
from functools import lru_cache
from typing import Any

TRUE_OR_FALSE = r"true|True|TRUE|false|False|FALSE"
NOTHING = r"~|null|Null|NULL|"
DIGITS = r"[0-9](?:_?[0-9])*"
WHOLE = rf"[-+]?{DIGITS}|0o[0-7]+|0x[0-9a-fA-F]+"
NUMBER = (
    rf"[-+]?(?:\.{DIGITS}|{DIGITS}(?:\.(?:{DIGITS})?)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
RESOLVED = (
    ("bool", TRUE_OR_FALSE, "tTfF"),
    ("null", NOTHING, ["~", "n", "N", ""]),
    ("int", WHOLE, "-+0123456789"),
    ("float", NUMBER, "-+.0123456789"),
    ("merge", r"<<", "<"),
)


def parsed(text: str) -> object:
    """Return the value of a document. Raises: ImportError without PyYAML, ValueError for what is no YAML."""
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415  of the server's extra

    try:
        return yaml.load(text, Loader=loader())  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


@lru_cache(maxsize=1)
def loader() -> Any:
    """Return PyYAML's safe loader with the words of the core schema."""
    import yaml  # noqa: PLC0415

    class CoreLoader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way

    for name, pattern, first in RESOLVED:
        CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{pattern})\Z"), list(first))
    CoreLoader.add_constructor("tag:yaml.org,2002:int", lambda _, node: _whole(node.value))
    return CoreLoader


def _whole(text: str) -> int:
    digits = text.replace("_", "")
    return int(digits, 0) if digits[:2] in ("0o", "0x") else int(digits)
