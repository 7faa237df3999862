"""Views as CSV: the page's main table, or that of one of its figures."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO

from crosswind.dashboards.pages.page import Page, View
from crosswind.dashboards.pages.render import Json, plain
from crosswind.data.schema.answers.sql import SqlAnswer, csv_cell
from crosswind.data.schema.errors import NotFoundError

NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?")


def as_csv(page: Page, view: View, figure: str | None = None) -> str:
    """Return the page's main table, or a figure's: nested values under names with dots, lists as JSON.

    Source: RFC 4180. Raises: NotFoundError for a figure that the page does not have.
    """
    if figure is not None:
        return _of_figure(view, figure)
    table: object = view
    for name in page.table.split("."):
        table = getattr(table, name, None)
    if isinstance(table, SqlAnswer):
        return _written([column.name for column in table.columns], table.rows)
    return _of_rows([dict(_flat(plain(row))) for row in table] if isinstance(table, tuple) else [])


def _of_figure(view: View, name: str) -> str:
    chart = next((chart for chart in view.charts if chart.name == name), None)
    if chart is None:
        names = ", ".join(chart.name for chart in view.charts) or "none: this page has no figure now"
        raise NotFoundError(f"figure {name[:60]!r} is not on this page: expected {names}")
    return _written(chart.table.headers, chart.table.rows)


def _of_rows(rows: Sequence[Mapping[str, Json]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return _written(names, ([row.get(name) for name in names] for row in rows))


def _flat(value: Json, name: str = "") -> Iterable[tuple[str, Json]]:
    if not isinstance(value, dict):
        yield name, value
        return
    for part, inner in value.items():
        yield from _flat(inner, f"{name}.{part}" if name else part)


def _written(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    file = StringIO()
    writer = csv.writer(file)
    writer.writerow(map(csv_cell, headers))
    writer.writerows(map(_cell, row) for row in rows)
    return file.getvalue()


def _cell(value: object) -> str:
    return value if isinstance(value, str) and NUMBER.fullmatch(value) else csv_cell(value)
