"""Answers from JSON, by the types of their fields and the standard library alone."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def decode(kind: type[T], value: Any) -> T:
    """Return the dataclass that this JSON object describes; fields that it does not have are ignored.

    A null where a number is expected is NaN. Raises: ValueError naming the field and what was expected there.
    """
    answer: T = _decoded(kind, value, kind.__name__)
    return answer


def _decoded(kind: Any, value: Any, place: str) -> Any:
    if is_dataclass(kind):
        return _record(kind, value, place)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return _one_of(arguments, value, place)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(arguments, value, place)
    if origin is not None and issubclass(origin, Sequence | frozenset):
        return _sequence(origin, arguments, value, place)
    return _scalar(kind, value, place)


def _record(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{place} is {value!r:.60}, expected an object")
    types = _types(kind)
    for field in fields(kind):
        if field.name not in value and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{place}.{field.name} is missing")
    return kind(
        **{name: _decoded(types[name], item, f"{place}.{name}") for name, item in value.items() if name in types}
    )


@cache
def _types(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _one_of(kinds: Sequence[Any], value: Any, place: str) -> Any:
    """The value as the first kind that takes it."""
    if value is None and NoneType in kinds:
        return None
    others = [kind for kind in kinds if kind is not NoneType]
    for kind in others[:-1]:
        try:
            return _decoded(kind, value, place)
        except ValueError:
            continue
    return _decoded(others[-1], value, place)


def _mapping(kinds: Sequence[Any], value: Any, place: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{place} is {value!r:.60}, expected an object")
    key, item = kinds
    return {_decoded(key, name, place): _decoded(item, part, f"{place}.{name}") for name, part in value.items()}


def _sequence(origin: Any, kinds: Sequence[Any], value: Any, place: str) -> Any:
    if not isinstance(value, list):
        raise ValueError(f"{place} is {value!r:.60}, expected a list")
    item_kinds = [kinds[0]] * len(value) if origin is not tuple or kinds[1:] == (...,) else kinds
    parts = zip(item_kinds, value, strict=True)
    made = [_decoded(kind, part, f"{place}[{number}]") for number, (kind, part) in enumerate(parts)]
    return origin(made) if origin in (tuple, frozenset) else made


def _scalar(kind: Any, value: Any, place: str) -> Any:
    if kind is Any or kind is object:
        return value
    if kind is float and value is None:
        return float("nan")
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if issubclass(kind, Enum):
        return kind(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{place} is {value!r:.60}, expected {kind.__name__}")
    return value
