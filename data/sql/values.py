"""Rows of an answer as plain values, which JSON and CSV have, too."""

import csv
import io
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from crosswind.data.schema.answers.sql import SqlAnswer, SqlField, csv_cell
from crosswind.data.sql.statement import SqlRows


def answer_of(rows: SqlRows) -> SqlAnswer:
    """Return the answer with its rows as plain values."""
    columns = tuple(SqlField(one.name, str(one.type)) for one in rows.table.schema)
    values = [[plain(value) for value in _listed(column)] for column in rows.table.columns]
    by_row = tuple(zip(*values, strict=True)) if values else ()
    return SqlAnswer(columns, by_row, rows.is_complete, rows.read, rows.seconds)


def as_csv(rows: SqlRows) -> str:
    """Return the rows as RFC 4180 has them, with a line of names; lists and objects are JSON."""
    answer = answer_of(rows)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([column.name for column in answer.columns])
    writer.writerows([[csv_cell(value) for value in row] for row in answer.rows])
    return text.getvalue()


def as_arrow(rows: SqlRows) -> bytes:
    """Return the rows as a stream of Arrow's IPC format."""
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, rows.table.schema) as writer:
        writer.write_table(rows.table)
    return stream.getvalue()


def _listed(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values; moments by the nanosecond as text, which Python's have not."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.string())
    values: list[Any] = column.to_pylist()
    return values


def plain(value: Any) -> object:
    """Return a value as text, number, boolean, list, object or None."""
    for kind, shown in PLAIN.items():
        if isinstance(value, kind):
            return shown(value)
    return value if isinstance(value, str | int | None) else str(value)


def _moment(value: datetime) -> str:
    return value.isoformat() if value.tzinfo else f"{value.isoformat()}Z"


PLAIN: Mapping[type, Callable[[Any], object]] = {
    bool: bool,
    float: lambda value: value if math.isfinite(value) else None,
    Decimal: lambda value: int(value) if value == value.to_integral_value() else float(value),
    bytes: bytes.hex,
    datetime: _moment,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: lambda value: value.total_seconds(),
    dict: lambda value: {str(name): plain(part) for name, part in value.items()},
    list: lambda value: [plain(part) for part in value],
    tuple: lambda value: [plain(part) for part in value],
}
