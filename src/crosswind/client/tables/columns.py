"""Columns of tables in Arrow: their types, by the names and types of an answer's fields, and rows in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import pyarrow as pa

if TYPE_CHECKING:
    from crosswind.data.schema.metric import MetricSet

SCALARS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
OF_DTYPE = {
    "int64": pa.int64(),
    "uint64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
}
WORDS = pa.dictionary(pa.int32(), pa.string())  # of which there are few
REPEATED = frozenset({"workload", "system", "node", "user", "account", "partition", "study_id", "owner", "cohort"})


@cache
def schema_of(kind: type) -> pa.Schema:
    """Return the columns of a dataclass of answers.

    Moments as text are timestamps, words of which there are few a dictionary, sequences lists, and objects JSON.
    """
    hints = get_type_hints(kind)
    return pa.schema([(field.name, _type(field.name, _bare(hints[field.name]))) for field in fields(kind)])


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


def _type(name: str, kind: Any) -> pa.DataType:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return WORDS
    if kind is str and name.endswith("_at"):
        return pa.timestamp("ns", tz="UTC")
    if kind is str and name in REPEATED:
        return WORDS
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (tuple, list, frozenset) and arguments[0] in SCALARS:
        return pa.list_(SCALARS[arguments[0]])
    return SCALARS.get(kind, pa.string())


def _bare(hint: Any) -> Any:
    """Return a type without None."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] if get_origin(hint) is UnionType else []
    return kinds[0] if len(kinds) == 1 else hint
