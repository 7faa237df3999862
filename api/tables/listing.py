"""Lists of the API: the part, columns, order and format that a request asks for, and the answer.

A list states its order and its key once; cursors, `sort`, `fields` and the formats follow from that.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from crosswind.api.paging import Format, ListQuery, Page, cursor_of, next_url, place_of
from crosswind.api.tables.columns import chosen, columns_of, narrowed, sortable, value_of
from crosswind.api.tables.formats import MEDIA_TYPES, format_of, schema_of, table_of, written
from crosswind.api.wire import as_json, as_plain
from crosswind.data.lake.row_columns import bare
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.part import Key, Part

if TYPE_CHECKING:  # heavy
    import pyarrow as pa

Row = TypeVar("Row")
JSON_ROWS, JSON_ROWS_MAX = 50, 500
TABLE_ROWS_MAX = 10_000  # of CSV and Arrow, where a list says nothing else
EVERY_ROW = 2**31  # a limit that limits nothing
ORDERED: Mapping[type, tuple[type, ...]] = {  # types in a cursor, by the type of a column
    kind: (kind, *((int,) if kind is float else ()), type(None)) for kind in (bool, int, float, str)
}
NOT_OF_SCOPE = ("cursor", "limit", "fields", "format", "sort")  # which may change, or whose meaning is in it already
ROWS_MARK, SORTS_MARK = "x-crosswind-rows", "x-crosswind-sorts"  # of a list in the description of its operation


@dataclass(frozen=True)
class Listing:
    """A list: the model of its pages and the field with the rows, its order, and the columns that make a place unique.

    `sorts` are what it can be sorted by, the order without `sort` first; -COLUMN: falling. Every column goes both ways.
    CSV and Arrow have up to `rows_max` rows; of a list that `is_whole`, all where the request states no limit.
    """

    page: type[Page]
    rows: str
    sorts: tuple[str, ...]
    key: tuple[str, ...]
    rows_max: int = TABLE_ROWS_MAX
    is_whole: bool = False

    @property
    def route(self) -> dict[str, Any]:
        """Return what the route of the list says of itself to FastAPI."""
        binary = {"schema": {"type": "string", "format": "binary"}}
        content = {MEDIA_TYPES[Format.CSV]: {"schema": {"type": "string"}}, MEDIA_TYPES[Format.ARROW]: binary}
        extra = {ROWS_MARK: self.rows, SORTS_MARK: [sort.removeprefix("-") for sort in self.sorts]}
        return {"response_model": self.page, "responses": {200: {"content": content}}, "openapi_extra": extra}

    @cached_property
    def row(self) -> type:
        """The type of its rows."""
        [kind] = get_args(bare(self.page.model_fields[self.rows].annotation))
        row: type = bare(kind)
        return row

    def asked(self, query: ListQuery, request: Request) -> "Asked":
        """Return what a request asks of the list. Raises: InvalidInputError naming the parameter."""
        by, descending = self._order(query.sort)
        form = format_of(query.format, request.headers.get("accept", ""))
        scope = scope_of(request.url.path, request.query_params, by=by, descending=descending)
        names = (by, *(name for name in self.key if name != by))
        part = Part(self._limit(query, form), by, descending, self._place(query.cursor, scope, names))
        return Asked(self, part, form, chosen(self.row, query.fields), scope, request)

    def _order(self, sort: str | None) -> tuple[str, bool]:
        wanted = sort or self.sorts[0]
        name = wanted.removeprefix("-")
        columns = [column.removeprefix("-") for column in self.sorts]
        if name not in columns:
            raise InvalidInputError(f"sort: {wanted!r:.60} is no order of this list: expected {_signed(columns)}")
        return name, wanted.startswith("-")

    def _limit(self, query: ListQuery, form: Format) -> int:
        most = JSON_ROWS_MAX if form is Format.JSON else self.rows_max
        if query.limit is None:
            return JSON_ROWS if form is Format.JSON else EVERY_ROW if self.is_whole else self.rows_max
        if query.limit > most:
            raise InvalidInputError(f"limit: {query.limit} is too large: expected at most {most} rows as {form}")
        return query.limit

    def _place(self, cursor: str | None, scope: str, names: Sequence[str]) -> tuple[Key, ...] | None:
        kinds = [ORDERED[sortable(columns_of(self.row)[name])] for name in names]
        place: tuple[Key, ...] | None = place_of(cursor, str, *kinds)
        if place is None:
            return None
        if place[0] != scope:
            raise InvalidInputError("cursor: is of another list, order or filter: send those again that it came with")
        return place[1:]


@dataclass(frozen=True)
class Asked:
    """A part of a list that somebody asked for, with its columns and its format."""

    listing: Listing
    part: Part
    form: Format
    names: tuple[str, ...]
    scope: str
    request: Request

    def answer(self, rows: Sequence[Any], **facts: object) -> Response:
        """Return the rows of the part in their format; `facts` are the page's other fields."""
        following = self.next_behind(rows[-1:], len(rows))
        chosen_rows = narrowed(rows, self.names)
        if self.form is Format.JSON:
            url = next_url(self.request, following)
            page = {**facts, self.listing.rows: chosen_rows, "next": following, "next_url": url}
            content = as_json(page)
        else:
            content = b"".join(written([table_of(as_plain(chosen_rows), self.schema)], self.schema, self.form))
        return Response(content, media_type=MEDIA_TYPES[self.form], headers=self._headers(following))

    def of_all(self, rows: Iterable[Row]) -> list[Row]:
        """Return this part of all rows of a list that is small."""
        return part_of(rows, self.part, self._names)

    def stream(self, tables: Iterable["pa.Table"], following: str | None = None) -> Response:
        """Return tables of the part's schema, one after the other, without holding them all in memory."""
        pieces = written(tables, self.schema, self.form)
        return StreamingResponse(pieces, media_type=MEDIA_TYPES[self.form], headers=self._headers(following))

    @property
    def schema(self) -> "pa.Schema":
        """The Arrow schema of its columns."""
        return schema_of(self.listing.row, self.names, self.form)

    def next_behind(self, last: Sequence[Any], count: int) -> str | None:
        """Return the cursor behind the last row of `count`; None where the list ends with it."""
        if count < self.part.limit or not last:
            return None
        return cursor_of(self.scope, *place_in(last[-1], self._names))

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.part.by, *(name for name in self.listing.key if name != self.part.by))

    def _headers(self, following: str | None) -> dict[str, str]:
        url = next_url(self.request, following)
        link = {} if url is None else {"Link": f'<{url}>; rel="next"'}
        name = {Format.JSON: None, Format.CSV: f"{self.listing.rows}.csv", Format.ARROW: f"{self.listing.rows}.arrows"}
        file = {} if name[self.form] is None else {"Content-Disposition": f'attachment; filename="{name[self.form]}"'}
        return {"Vary": "Accept", **link, **file}


def scope_of(path: str, query: Mapping[str, str], *, by: str, descending: bool) -> str:
    """Return a short text that is the same for parts of one list with one order and filter."""
    filters = sorted(item for item in query.items() if item[0] not in NOT_OF_SCOPE)
    return hashlib.sha256(json.dumps([path, by, descending, filters]).encode()).hexdigest()[:16]


def place_in(row: Any, names: Sequence[str]) -> tuple[Key, ...]:
    """Return the values by which a row has its place."""
    return tuple(as_plain(value_of(row, name)) for name in names)


def part_of(rows: Iterable[Row], part: Part, names: Sequence[str]) -> list[Row]:
    """Return a part of rows, in the order of the first of these columns and then of the others; nulls last."""
    by_place = {place_in(row, names): row for row in rows}
    ordered = sorted((place for place in by_place if place[0] is not None), reverse=part.descending)
    places = ordered + sorted((place for place in by_place if place[0] is None), key=_rest, reverse=part.descending)
    if part.after is not None:
        places = [place for place in places if _is_behind(place, part.after, descending=part.descending)]
    return [by_place[place] for place in places[: part.limit]]


def _rest(place: tuple[Key, ...]) -> Any:
    return place[1:]


def _is_behind(place: Any, after: Any, *, descending: bool) -> bool:
    if place[0] is None or after[0] is None:
        is_same = place[0] is None and after[0] is None
        return _is_behind(place[1:], after[1:], descending=descending) if is_same else place[0] is None
    return bool(place < after if descending else place > after)


def _signed(columns: Iterable[str]) -> str:
    return " or ".join(f"[-]{name}" for name in columns)
