"""Columns of tables in Arrow: their types, by the names and types of an answer's fields, and rows in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

import pyarrow as pa

from crosswind.data.lake.row_columns import arrow_type, bare

if TYPE_CHECKING:
    from crosswind.data.schema.metric import MetricSet

OF_DTYPE = {
    "int64": pa.int64(),
    "uint64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
}


@cache
def schema_of(kind: type) -> pa.Schema:
    """Return the columns of a dataclass of answers.

    Moments as text are timestamps, words of which there are few a dictionary, sequences lists, and objects JSON.
    """
    hints = get_type_hints(kind)
    return pa.schema([(field.name, arrow_type(field.name, bare(hints[field.name]))) for field in fields(kind)])


def schema_of_set(metric_set: MetricSet) -> pa.Schema:
    """Return the columns of a metric set in base units."""
    return pa.schema(
        [
            (column.name, OF_DTYPE[column.dtype] if column.scale == 1.0 else pa.float64())
            for column in metric_set.columns
        ]
    )


def table_of(rows: Iterable[Any], schema: pa.Schema) -> pa.Table:
    """Return rows, dataclasses or objects of JSON, as a table of this schema; fields that it lacks are left out."""
    values = [row if isinstance(row, Mapping) else vars(row) for row in rows]
    columns = [_array([row.get(field.name) for row in values], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind):
        return pa.array([None if value is None else list(value) for value in values], kind)
    if pa.types.is_string(kind) or pa.types.is_timestamp(kind) or pa.types.is_dictionary(kind):
        return pa.array([_text(value) for value in values], pa.string()).cast(kind)
    return pa.array(values, kind, from_pandas=True)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value if not isinstance(value, Enum) else str(value.value)
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
