"""Columns of a list's rows: their names and types, and rows as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_type_hints

from pydantic import BaseModel

from crosswind.data.lake.row_columns import SCALARS, bare, is_of_words
from crosswind.data.schema.errors import InvalidInputError


@cache
def columns_of(row: type) -> Mapping[str, Any]:
    """Return the columns of a dataclass or a model of rows, by name their types without None."""
    if is_dataclass(row):
        hints = get_type_hints(row)
        return {field.name: bare(hints[field.name]) for field in fields(row)}
    if issubclass(row, BaseModel):
        return {name: bare(field.annotation) for name, field in row.model_fields.items()}
    raise TypeError(f"{row}: expected a dataclass or a model")


def sortable(kind: Any) -> type:
    """Return the type of a column's values in cursors. Raises: TypeError where a list cannot be sorted by it."""
    if is_of_words(kind):
        return str
    if kind in SCALARS:
        plain: type = kind
        return plain
    raise TypeError(f"{kind}: expected a type that has an order")


def chosen(row: type, text: str | None) -> tuple[str, ...]:
    """Return the names in a list of columns with commas; all of the row's without one. Raises: InvalidInputError."""
    columns = tuple(columns_of(row))
    if text is None:
        return columns
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in columns:
            raise InvalidInputError(f"fields: {name!r:.60} is unknown: expected some of {', '.join(columns)}")
        if names.count(name) > 1:
            raise InvalidInputError(f"fields: {name!r} is given twice: expected it once")
    return names


def narrowed(rows: Sequence[Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows as dictionaries of these columns."""
    return [{name: value_of(row, name) for name in names} for row in rows]


def value_of(row: Any, name: str) -> Any:
    """Return the value of one column of a row."""
    return row[name] if isinstance(row, dict) else getattr(row, name)
