"""Formats of lists: which one a request wants, and rows in CSV or in Arrow's stream format.

CSV is safe to open in a spreadsheet: a text that a spreadsheet takes for a formula gets an apostrophe in front, as
OWASP's page "CSV Injection" advises. Numbers are never changed. Whoever needs every text as it is asks for another
format.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from crosswind.api.delivery.negotiation import preferences
from crosswind.api.paging import Format
from crosswind.api.tables.columns import columns_of
from crosswind.data.lake.row_columns import arrow_type, scalar_type

if TYPE_CHECKING:  # heavy
    import pyarrow as pa


MEDIA_TYPES: Mapping[Format, str] = MappingProxyType(
    {
        Format.JSON: "application/json",
        Format.CSV: "text/csv",
        Format.ARROW: "application/vnd.apache.arrow.stream",
    }
)
FORMULA = r"^[=+\-@\t\r\n]"


def format_of(wanted: Format | None, accept: str) -> Format:
    """Return the format that a request names, or else prefers by its Accept field; JSON where it says nothing of them.

    Source: RFC 9110, 12.5.1.
    """
    if wanted is not None:
        return wanted
    qualities = preferences(accept)
    return max(Format, key=lambda one: _quality(qualities, MEDIA_TYPES[one])) if qualities else Format.JSON


def _quality(qualities: Mapping[str, float], media_type: str) -> float:
    family = f"{media_type.partition('/')[0]}/*"
    return next((qualities[name] for name in (media_type, family, "*/*") if name in qualities), 0.0)


def schema_of(row: type, names: Sequence[str], form: Format) -> "pa.Schema":
    """Return the Arrow schema of these columns of a row.

    Moments are timestamps, words of which there are few a dictionary, and objects JSON in a text. For CSV, whatever is
    no number or truth value is text.
    """
    import pyarrow as pa  # noqa: PLC0415 - heavy

    columns = columns_of(row)
    of_kind = _csv_type if form is Format.CSV else arrow_type
    return pa.schema([pa.field(name, of_kind(name, columns[name])) for name in names])


def _csv_type(_: str, kind: Any) -> "pa.DataType":
    return scalar_type(kind)


def table_of(rows: Sequence[Mapping[str, Any]], schema: "pa.Schema") -> "pa.Table":
    """Return plain rows as a table of this schema; what is not a number is missing."""
    import pyarrow as pa  # noqa: PLC0415 - heavy

    arrays = [_array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: list[Any], kind: "pa.DataType") -> "pa.Array":
    import pyarrow as pa  # noqa: PLC0415 - heavy

    if pa.types.is_list(kind):
        return pa.array(values, kind)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pa.array(values, kind, from_pandas=True)
    texts = pa.array([_text(value) for value in values], pa.string())
    return texts if kind == pa.string() else texts.cast(kind)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def written(tables: Iterable["pa.Table"], schema: "pa.Schema", form: Format) -> Iterator[bytes]:
    """Yield tables of this schema in CSV or in Arrow's stream format, a piece for each.

    Source: RFC 4180; arrow.apache.org/docs/format/Columnar.html, "IPC Streaming Format".
    """
    import pyarrow as pa  # noqa: PLC0415 - heavy
    from pyarrow import csv  # noqa: PLC0415 - heavy

    sink = BytesIO()
    with csv.CSVWriter(sink, schema) if form is Format.CSV else pa.ipc.new_stream(sink, schema) as writer:
        yield _taken(sink)
        for table in tables:
            writer.write_table(_harmless(table) if form is Format.CSV else table)
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: BytesIO) -> bytes:
    piece = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return piece


def _harmless(table: "pa.Table") -> "pa.Table":
    """Return the table with an apostrophe before texts that a spreadsheet takes for formulas."""
    import pyarrow as pa  # noqa: PLC0415 - heavy
    from pyarrow import compute  # noqa: PLC0415 - heavy

    for place, field in enumerate(table.schema):
        if field.type == pa.string():
            texts = table.column(place)
            is_formula = compute.match_substring_regex(texts, FORMULA)
            safe = compute.if_else(is_formula, compute.binary_join_element_wise("'", texts, ""), texts)
            table = table.set_column(place, field, safe)
    return table
