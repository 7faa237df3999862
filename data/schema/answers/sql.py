"""Answers to SQL: rows, the tables that were read for them, and the tables that there are."""

import json
from dataclasses import dataclass, field

from crosswind.data.schema.answers.fields import about

FORMULAS = "=+-@\t\r\n"  # begin one


@dataclass(frozen=True)
class SqlColumn:
    """One column of a table."""

    name: str
    type: str = field(metadata=about("as DuckDB calls it; JSON objects and lists are VARCHAR"))
    unit: str = field(metadata=about("of its values; empty without one"))
    description: str


@dataclass(frozen=True)
class SqlTable:
    """One table that statements may name."""

    name: str
    description: str
    columns: tuple[SqlColumn, ...]


@dataclass(frozen=True)
class SqlTables:
    """The tables that statements may name."""

    tables: tuple[SqlTable, ...]


@dataclass(frozen=True)
class SqlField:
    """One column of an answer."""

    name: str
    type: str = field(metadata=about("as Arrow calls it"))


@dataclass(frozen=True)
class ReadTable:
    """A table that was read for an answer, and how many of its rows: those that may be seen and may matter."""

    name: str
    rows: int


@dataclass(frozen=True)
class SqlAnswer:
    """The rows of an answer, each with a value for each column: text, number, boolean, list, object or null.

    Moments are text as RFC 3339 has them; a number that is infinite or not a number is null, bytes are hexadecimal.
    """

    columns: tuple[SqlField, ...]
    rows: tuple[tuple[object, ...], ...]
    is_complete: bool = field(metadata=about("false: there are more rows than the limit"))
    read: tuple[ReadTable, ...]
    seconds: float = field(metadata=about("from the question to the answer"))


def cell(value: object) -> str:
    """Return a value of an answer as text: nothing for null, JSON for all but texts."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def csv_cell(value: object) -> str:
    """Return a value as text of a CSV file; one that a spreadsheet takes for a formula has an apostrophe in front.

    Source: OWASP, "CSV Injection".
    """
    return f"'{value}" if isinstance(value, str) and value[:1] in FORMULAS and value else cell(value)
