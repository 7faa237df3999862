"""Segments: the format of metric rows and catalog records in a spool file, written and read.

A segment is a row of frames: little-endian u32 length, u32 CRC-32 of the payload, payload. A payload is one compact
JSON object: a metric set (before its first rows), the rows of a set by column, the samples of one sweep, or a partial
record for the catalog.
"""

import json
import math
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from types import NoneType
from typing import Any

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import DTYPES, NODE_KEYS, Column, MetricSet, Scalar, is_name

HEADER = struct.Struct("<II")
MAX_FRAME_BYTES = 64 * 1024 * 1024  # a garbled or hostile length makes a reader allocate no more
STRICT_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
SET_FRAME, SAMPLES_FRAME = b'{"kind":"set"', b'{"kind":"samples"'  # as our own writers begin them
KNOWN_SET_BYTES = 64 * 1024  # some 300 columns; larger sets are read again each time
SHARED = frozenset(key.name for key in NODE_KEYS)
INTEGER_RANGES = {"int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1)}
PACKED = {"int64": "q", "uint64": "Q", "float64": "d"}
WITH_MISSING = {dtype: frozenset((*kinds, NoneType)) for dtype, kinds in DTYPES.items()}
Picked = Callable[[Sequence[Sequence[Any]]], tuple[Sequence[Any], ...]]
COLUMN_FIELDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("name", "description", "kind", "dtype", "unit", "on_full", "range_from"), (str,)),
    "scale": (int, float),
    "max_rate": (int, float),
    "width_bits": (int,),
}


def _refuse_constant(literal: str) -> object:
    raise ValueError(f"{literal} is not JSON")


STRICT_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


@dataclass(frozen=True, slots=True)
class SetFrame:
    """A metric set, announced before its rows."""

    metric_set: MetricSet


@dataclass(frozen=True, slots=True)
class RowsFrame:
    """Rows of one metric set, as equally long columns; null for missing."""

    metric_set: MetricSet
    columns: Mapping[str, Sequence[Scalar]]


@dataclass(frozen=True, slots=True)
class SweepRows:
    """The rows of one set in one sweep: the keys that all rows share, and a row a device.

    A row is the device, then a value for each of the set's own columns, in its order; None for missing.
    """

    metric_set: MetricSet  # with the node's keys
    ts_ns: int
    mono_ns: int
    node: str
    boot_id: str | None
    rows: Sequence[Sequence[Scalar]]

    def columns(self) -> dict[str, Sequence[Scalar]]:
        """The rows by column.

        Raises: MalformedError when a row has more or fewer values than the set has columns.
        """
        names = [column.name for column in self.metric_set.columns if column.name not in SHARED]
        for row in self.rows:
            if len(row) != len(names) + 1:
                raise MalformedError(
                    f"samples of {self.metric_set.name}: {len(row)} values in a row, expected {len(names) + 1}"
                )
        by_column = [list(values) for values in zip(*self.rows, strict=True)]
        return {
            **{name: [value] * len(self.rows) for name, value in self.shared().items()},
            **dict(zip(("device", *names), by_column, strict=True)),
        }

    def shared(self) -> dict[str, Scalar]:
        """The keys that are the same in every row."""
        return {"ts_ns": self.ts_ns, "node": self.node, "boot_id": self.boot_id, "mono_ns": self.mono_ns}


@dataclass(frozen=True, slots=True)
class RecordFrame:
    """A partial record for the catalog, to be merged by its key."""

    record: str
    value: Mapping[str, object]


Frame = SetFrame | RowsFrame | RecordFrame


def encode_frame(value: Mapping[str, object]) -> bytes:
    """One frame, header and payload.

    Raises: MalformedError for what strict JSON cannot say (NaN, infinity, foreign types) and for oversized payloads.
    """
    return _framed(_strict_json(value))


def check_rows(sweep_rows: SweepRows, rows: Sequence[Sequence[Scalar]]) -> None:
    """Check that a sweep's rows fit their set. Raises: MalformedError naming set, column and value."""
    if not _shape(sweep_rows.metric_set).fits(rows):
        check_columns(sweep_rows.metric_set, sweep_rows.columns())  # which names the column


def encoded_samples(sweep_rows: SweepRows, texts: Sequence[str], rows: Sequence[Sequence[Scalar]]) -> bytes:
    """Return the frame of one set in one sweep, with the keys that its rows share only once.

    `texts` are rows as `encoded_value` wrote them. Raises: MalformedError for what JSON cannot say.
    """
    node, boot_id = encoded_value(sweep_rows.node), encoded_value(sweep_rows.boot_id)
    keys = f'"ts_ns":{sweep_rows.ts_ns},"node":{node},"boot_id":{boot_id},"mono_ns":{sweep_rows.mono_ns}'
    content = ",".join([*texts, encoded_value(rows)[1:-1]] if rows else texts)
    return _framed(_utf8(f'{{"kind":"samples","set":"{sweep_rows.metric_set.name}",{keys},"rows":[{content}]}}'))


def encoded_value(value: object) -> str:
    """A value as strict JSON. Raises: MalformedError."""
    try:
        return STRICT_JSON.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedError(f"cannot be written as strict JSON: {error!s:.200}") from error


def parse_payload(payload: bytes, sets: Mapping[str, MetricSet]) -> Frame:
    """Return the frame in a payload; the set of its rows must be among those announced before.

    Raises: MalformedError when it is not strict JSON, not of a known shape, or its values are not the set's.
    """
    frame = parse_loosely(payload, sets)
    if isinstance(frame, SweepRows):
        frame = RowsFrame(frame.metric_set, frame.columns())
    if isinstance(frame, RowsFrame):
        check_columns(frame.metric_set, frame.columns)
    return frame


def parse_loosely(payload: bytes, sets: Mapping[str, MetricSet]) -> Frame | SweepRows:
    """Return the frame in a payload; callers have to check its values against the set, as `check_columns` does.

    Raises: MalformedError when it is not strict JSON or not of a known shape.
    """
    if payload.startswith(SET_FRAME) and len(payload) <= KNOWN_SET_BYTES:
        return _known_set(payload)
    value = _object(_strictly_loaded(payload), "payload")
    match value.get("kind"):
        case "set":
            return SetFrame(_metric_set(_object(value.get("set"), "set")))
        case "rows":
            return _rows(value, sets)
        case "samples":
            return _samples(value, sets)
        case "record":
            return _record(value)
        case kind:
            raise MalformedError(f"frame kind {kind!r:.80}: expected set, rows, samples or record")


@lru_cache(maxsize=300)
def _known_set(payload: bytes) -> SetFrame:
    """Return the set in these payloads, parsed once: it is in every segment of every agent."""
    value = _object(_strictly_loaded(payload), "payload")
    if value.get("kind") != "set":  # announced twice, and differently the second time
        raise MalformedError(f"frame kind {value.get('kind')!r:.80}: expected set")
    return SetFrame(_metric_set(_object(value.get("set"), "set")))


@dataclass(frozen=True)
class _Shape:
    """The shape of a set's rows, so that they are checked in a few calls instead of a few a value."""

    width: int
    columns: tuple[tuple[str, Picked], ...]  # by type: the type, and what picks its columns out of all

    def fits(self, rows: Sequence[Sequence[Any]]) -> bool:
        """Return whether every value is missing, or of its column's type and range."""
        if not set(map(len, rows)) <= {self.width}:
            return False
        columns = list(zip(*rows, strict=True))
        return not rows or all(
            _fit(dtype, list(chain.from_iterable(picked(columns)))) for dtype, picked in self.columns
        )


def _fit(dtype: str, values: list[Any]) -> bool:
    kinds = set(map(type, values))
    if not kinds <= WITH_MISSING[dtype]:
        return False
    if dtype not in PACKED:
        return True
    numbers = list(filter(None, values)) if NoneType in kinds else values
    try:
        struct.pack(f"={len(numbers)}{PACKED[dtype]}", *numbers)  # refuses those out of range
    except (struct.error, OverflowError):
        return False
    return dtype != "float64" or all(map(math.isfinite, numbers))


@lru_cache(maxsize=200)
def _shape(metric_set: MetricSet) -> _Shape:
    dtypes = ["string", *(column.dtype for column in metric_set.columns if column.name not in SHARED)]
    places: dict[str, list[int]] = {}
    for place, dtype in enumerate(dtypes):
        places.setdefault(dtype, []).append(place)
    # An itemgetter of one place would give no tuple.
    picked = [(dtype, itemgetter(*(those * 2 if len(those) == 1 else those))) for dtype, those in places.items()]
    return _Shape(len(dtypes), tuple(picked))


def check_columns(metric_set: MetricSet, columns: Mapping[str, Sequence[Scalar]]) -> None:
    """Check that columns belong to the set, are equally long and hold values of their type or null.

    Raises: MalformedError naming set, column and value.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise MalformedError(f"rows of {metric_set.name}: expected columns of one length, found {lengths!s:.300}")
    columns_by_name = {column.name: column for column in metric_set.columns}
    for name, values in columns.items():
        if name not in columns_by_name:
            raise MalformedError(f"rows of {metric_set.name}: column {name!r:.80} is not in the set")
        reason = _unfit(columns_by_name[name], values)
        if reason:
            raise MalformedError(f"rows of {metric_set.name}: column {name}: {reason}")


def _metric_set(value: dict[str, object]) -> MetricSet:
    columns = value.get("columns")
    if not isinstance(columns, list):
        raise MalformedError(f"columns of a set {columns!r:.80}: expected a list")
    for column in columns:
        for name, field in _object(column, "column").items():
            if not isinstance(field, COLUMN_FIELDS.get(name, ())):
                raise MalformedError(f"column of a set: field {name!r:.40} is {field!r:.80}")
    names = {field: value.get(field) for field in ("name", "description")}
    if not all(isinstance(text, str) for text in names.values()):
        raise MalformedError(f"set {names!s:.120}: expected texts")
    _strict_json(value)
    return MetricSet.from_json(value)


def _rows(value: Mapping[str, object], sets: Mapping[str, MetricSet]) -> RowsFrame:
    metric_set = _announced(value.get("set"), sets)
    columns = _object(value.get("columns"), "columns")
    lists = {column: values for column, values in columns.items() if isinstance(values, list)}
    if not columns or len(lists) != len(columns):
        raise MalformedError(f"rows of {metric_set.name}: expected an object of lists, found {columns!s:.80}")
    return RowsFrame(metric_set, lists)


def _samples(value: Mapping[str, object], sets: Mapping[str, MetricSet]) -> SweepRows:
    metric_set, rows = swept_set(value.get("set"), sets), value.get("rows")
    if not isinstance(rows, list) or set(map(type, rows)) != {list}:
        raise MalformedError(f"samples of {metric_set.name}: expected a list of rows, found {rows!s:.80}")
    shared: dict[str, Any] = {name: value.get(name) for name in SHARED - {"device"}}
    return SweepRows(metric_set, rows=rows, **shared)


@lru_cache(maxsize=500)
def _has_node_keys(metric_set: MetricSet) -> bool:
    return SHARED.issubset(column.name for column in metric_set.columns)


def swept_set(name: object, sets: Mapping[str, MetricSet]) -> MetricSet:
    """Return the set of the samples. Raises: MalformedError when it was not announced or lacks a node's keys."""
    metric_set = _announced(name, sets)
    if not _has_node_keys(metric_set):
        raise MalformedError(f"samples of {name}: expected a set with the columns {', '.join(sorted(SHARED))}")
    return metric_set


def _announced(name: object, sets: Mapping[str, MetricSet]) -> MetricSet:
    if not isinstance(name, str) or name not in sets:
        raise MalformedError(f"rows of {name!r:.80}: expected a set announced earlier in the segment")
    return sets[name]


def _record(value: Mapping[str, object]) -> RecordFrame:
    name = value.get("record")
    if not isinstance(name, str) or not is_name(name):
        raise MalformedError(f"record {name!r:.80}: expected a name of lower-case letters, digits and underscores")
    content = _object(value.get("value"), f"value of record {name}")
    _strict_json(content)  # refuses what the grammar lets through: numbers beyond float range, lone surrogates
    return RecordFrame(name, content)


def _object(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise MalformedError(f"{what} {value!r:.80}: expected a JSON object")
    return value


def _strictly_loaded(payload: bytes) -> object:
    try:
        return STRICT_DECODER.decode(payload.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"payload is not strict JSON: {error!s:.200}") from error


def _strict_json(value: Mapping[str, object]) -> bytes:
    return _utf8(encoded_value(value))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MalformedError(f"cannot be written as strict JSON: {error!s:.200}") from error


def _framed(payload: bytes) -> bytes:
    if len(payload) > MAX_FRAME_BYTES:
        raise MalformedError(f"frame of {len(payload)} bytes: expected at most {MAX_FRAME_BYTES}")
    return HEADER.pack(len(payload), zlib.crc32(payload)) + payload


def _unfit(column: Column, values: Sequence[Scalar]) -> str | None:
    present = [value for value in values if value is not None]
    foreign = set(map(type, present)).difference(DTYPES[column.dtype])
    if foreign:
        return f"{sorted(kind.__name__ for kind in foreign)} among the values, expected {column.dtype}"
    try:
        return _out_of_range(column, present)
    except (OverflowError, UnicodeEncodeError) as error:
        return f"expected {column.dtype}: {error}"


def _out_of_range(column: Column, present: Sequence[Any]) -> str | None:
    """Return why some of these values of the column's type cannot be stored; None if all can."""
    wrong: list[int | float] = []
    if column.dtype in INTEGER_RANGES and present:
        low, high = INTEGER_RANGES[column.dtype]
        wrong = [value for value in (min(present), max(present)) if not low <= value <= high]
    elif column.dtype == "float64" and not all(map(math.isfinite, present)):
        wrong = [value for value in present if not math.isfinite(value)]
    elif column.dtype == "string":
        "".join(present).encode("utf-8")
    return f"{wrong[0]!r:.80}, expected {column.dtype}" if wrong else None
