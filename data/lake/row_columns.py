"""Columns of rows that are dataclasses of answers: their types without remarks, and in Arrow."""

from collections.abc import Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

if TYPE_CHECKING:  # heavy
    import pyarrow as pa

SCALARS = (bool, int, float, str)
REPEATED = frozenset({"workload", "system", "node", "user", "account", "partition", "study_id", "owner", "cohort"})


def bare(hint: Any) -> Any:
    """Return a type without its remarks, and without None."""
    if get_origin(hint) is Annotated:
        return bare(get_args(hint)[0])
    if get_origin(hint) in (UnionType, Union):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        return bare(kinds[0]) if len(kinds) == 1 else hint
    return hint


def is_of_words(kind: Any) -> bool:
    """Return whether a type's values are a few words."""
    return get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, str) and issubclass(kind, Enum))


def arrow_type(name: str, kind: Any) -> "pa.DataType":
    """Return the type of a column in Arrow.

    Moments are timestamps, words of which there are few a dictionary, sequences of scalars lists, and objects texts.
    """
    import pyarrow as pa  # noqa: PLC0415 - heavy

    if is_of_words(kind) or (kind is str and name in REPEATED):
        return pa.dictionary(pa.int32(), pa.string())
    if kind is str and name.endswith("_at"):
        return pa.timestamp("ns", tz="UTC")
    if (item := _item(kind)) in SCALARS:
        return pa.list_(scalar_type(item))
    return scalar_type(kind)


def scalar_type(kind: Any) -> "pa.DataType":
    """Return the type of a number or truth value in Arrow, that of texts for all else."""
    import pyarrow as pa  # noqa: PLC0415 - heavy

    return {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}.get(kind, pa.string())


def _item(kind: Any) -> Any:
    """Return the type of a sequence's items; None where it is no sequence of one type."""
    arguments = [part for part in get_args(kind) if part is not Ellipsis]
    is_sequence = isinstance(origin := get_origin(kind), type) and issubclass(origin, Sequence | frozenset)
    return bare(arguments[0]) if is_sequence and len(arguments) == 1 else None
