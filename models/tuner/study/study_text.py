"""Study files as text: YAML, JSON or TOML, by the file's ending."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.yaml_text import loader, parsed

BYTES_MAX = 1 << 20


def mapping_in(path: Path) -> Mapping[str, object]:
    """Return the fields in the file. Raises: UnavailableError, MalformedError, InvalidInputError; all name the file."""
    read = _READ.get(path.suffix.lower())
    if read is None:
        raise InvalidInputError(f"{path}: the ending is {path.suffix!r}, expected one of {', '.join(_READ)}")
    try:
        with path.open("rb") as stream:
            text = stream.read(BYTES_MAX + 1)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    if len(text) > BYTES_MAX:
        raise MalformedError(f"{path}: more than {BYTES_MAX} bytes, expected a small file")
    try:
        content = read(text.decode("utf-8-sig"))
    except ImportError as error:
        raise UnavailableError(f"{path}: PyYAML is needed: pip install 'crosswind[server]', or write JSON") from error
    except (ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise MalformedError(f"{path}: cannot be read: {reason}") from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise MalformedError(f"{path}: expected fields such as name, objective and parameters, found {content!r:.80}")
    return content


def _json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice!r} stands twice, expected it once")
    return dict(pairs)


def _yaml(text: str) -> object:
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415  of the server's extra

    try:
        _check_tree(yaml, yaml.compose(text, Loader=loader()))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    return parsed(text)


def _check_tree(yaml: object, tree: object) -> None:
    """Refuse anchors that are used again, which can unfold into something huge, and names given twice."""
    nodes, seen = [tree], set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            raise ValueError("it has anchors that are used again, expected every value written out")
        seen.add(id(node))
        value = getattr(node, "value", None)
        for child in value if isinstance(value, list) else ():
            nodes.extend(child if isinstance(child, tuple) else (child,))
        if isinstance(node, yaml.MappingNode):  # type: ignore[attr-defined]
            _unique([(str(key.value), None) for key, _ in node.value])


_READ: Mapping[str, Callable[[str], object]] = {
    ".yaml": _yaml,
    ".yml": _yaml,
    ".json": _json,
    ".toml": tomllib.loads,
}
