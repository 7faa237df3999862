"""Configurations of other tools, nested or as texts, as flat maps of scalars."""

import json
import math
import re
from collections.abc import Iterator, Mapping

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import Parameter

PARAMETERS_MAX = 2000
DEPTH_MAX = 20
TEXT_LIMIT = 1000  # characters
WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
TRUTHS = {"true": True, "false": False, "True": True, "False": False}


def storable(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return the text as a store takes it: without zero characters and lone surrogates, and not too long."""
    return text[:limit].encode(errors="replace").decode().replace("\0", "\ufffd")


def flat(tree: Mapping[str, object] | Mapping[object, object]) -> dict[str, Parameter]:
    """Return scalars by their path, dots between its parts; lists as JSON texts, without nulls.

    Raises: MalformedError for more than PARAMETERS_MAX.
    """
    scalars: dict[str, Parameter] = {}
    for name, value in _leaves(tree, "", 0):
        if len(scalars) == PARAMETERS_MAX:
            raise MalformedError(f"more than {PARAMETERS_MAX} parameters")
        scalars[storable(name)] = value
    return scalars


def scalar_of(text: str) -> Parameter:
    """Return the number or truth value in a text, or the text itself."""
    if WHOLE.fullmatch(text):
        return int(text)
    if REAL.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return TRUTHS[text] if text in TRUTHS else storable(text)


def _leaves(node: object, path: str, depth: int) -> Iterator[tuple[str, Parameter]]:
    if depth > DEPTH_MAX:
        raise MalformedError(f"{path[:80]!r} is nested more than {DEPTH_MAX} deep")
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _leaves(value, f"{path}.{key}" if path else str(key), depth + 1)
    elif node is not None:
        yield path, _scalar(node)


def _scalar(leaf: object) -> Parameter:
    if isinstance(leaf, bool | int):
        return leaf if abs(leaf) < 1 << 62 else "beyond 62 bits"
    if isinstance(leaf, float):
        return leaf if math.isfinite(leaf) else str(leaf)
    if isinstance(leaf, list | tuple):
        return _text_of(leaf)
    return storable(str(leaf))  # dates, for instance


def _text_of(values: list[object] | tuple[object, ...]) -> str:
    if not all(value is None or isinstance(value, str | int | float) for value in values):
        return f"{len(values)} values"  # anchors may make few nested ones very many
    return json.dumps(values[:TEXT_LIMIT])[:TEXT_LIMIT]
