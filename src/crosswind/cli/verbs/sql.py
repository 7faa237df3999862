"""`crosswind sql`: one SELECT over what is stored, as far as you may see it."""

import argparse
import csv
import sys
from functools import partial
from pathlib import Path

from crosswind.cli.arguments import configure_server
from crosswind.cli.quantities import whole
from crosswind.cli.text.output import notice, say_answer, table
from crosswind.client.connection import connect
from crosswind.client.sql import Sql
from crosswind.dashboards.wording import count
from crosswind.data.schema.answers.sql import SqlAnswer, SqlTable, SqlTables, cell, csv_cell
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.sql.limits import ROWS, ROWS_MAX
from crosswind.settings import Settings

STDIN = "-"
WIDE = 60  # characters of a cell in a table for people


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("query", nargs="?", help="one SELECT, as DuckDB has it; - reads it from standard input")
    parser.add_argument("--file", type=Path, help="read it from this file instead")
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="VALUE", help="value of a `?`, as text; may be repeated"
    )
    parser.add_argument("--limit", type=whole, default=ROWS, help=f"rows at most (default {ROWS}, up to {ROWS_MAX})")
    parser.add_argument("--tables", action="store_true", help="list tables and columns; QUERY names one table")
    parser.add_argument("--csv", action="store_true", help="print comma-separated values")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the rows of a SELECT, or the tables that it may name."""
    with connect(arguments.server, settings=settings) as client:
        if arguments.tables:
            _list(client.sql, arguments)
            return 0
        answer = client.sql(_query(arguments), arguments.parameter, limit=arguments.limit)
    if arguments.csv:
        _print_csv(answer)
    else:
        say_answer(answer, rows_text, as_json=arguments.json)
    if not answer.is_complete:
        notice(f"there are more than {len(answer.rows)} rows: --limit, up to {ROWS_MAX}")
    return 0


def rows_text(answer: SqlAnswer) -> str:
    """Return the rows as a table, and how many there are."""
    headings = [column.name for column in answer.columns]
    rows = [[_short(cell(value)) for value in row] for row in answer.rows]
    return f"{table(headings, rows)}\n({count(len(rows), 'row')}, {answer.seconds:.2f} s)"


def tables_text(tables: SqlTables, name: str | None) -> str:
    """Return the tables in a table, or the columns of one."""
    if name is None:
        return table(
            ("table", "columns", "holds"), [(t.name, str(len(t.columns)), t.description) for t in tables.tables]
        )
    [one] = _named(tables, name)
    return table(("column", "type", "unit", "holds"), [(c.name, c.type, c.unit, c.description) for c in one.columns])


def _named(tables: SqlTables, name: str) -> list[SqlTable]:
    named = [one for one in tables.tables if one.name == name.lower()]
    if not named:
        listed = ", ".join(one.name for one in tables.tables)
        raise InvalidInputError(f"table {name[:60]!r} is unknown, expected one of {listed}")
    return named


def _list(sql: Sql, arguments: argparse.Namespace) -> None:
    say_answer(sql.tables(), partial(tables_text, name=arguments.query), as_json=arguments.json)


def _query(arguments: argparse.Namespace) -> str:
    if arguments.file is not None:
        try:
            return str(arguments.file.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise UnavailableError(f"--file {arguments.file}: cannot be read: {error}") from error
    if arguments.query is None:
        raise InvalidInputError('query: missing, expected one SELECT, such as "select workload, count(*) from runs"')
    return sys.stdin.read() if arguments.query == STDIN else str(arguments.query)


def _print_csv(answer: SqlAnswer) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([column.name for column in answer.columns])
    writer.writerows([[csv_cell(value) for value in row] for row in answer.rows])


def _short(text: str) -> str:
    return text if len(text) <= WIDE else f"{text[: WIDE - 3]}..."
