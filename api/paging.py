"""Parts of lists, and the cursors that lead from one part to the next."""

import base64
import binascii
import json
from collections.abc import Mapping
from contextvars import ContextVar
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Request
from pydantic import BaseModel, Field

from crosswind.api.wire import INT64, View, is_storable
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.part import Key

ROWS_MAX = 100_000


class Format(StrEnum):
    """The formats of a list."""

    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


class ListQuery(BaseModel):
    """The part of a list to return, its columns, its order and its format."""

    limit: Annotated[
        int | None,
        Field(ge=1, le=ROWS_MAX, description="rows at most; JSON: up to 500, 50 by default; CSV and Arrow: more"),
    ] = None
    cursor: Annotated[str | None, Field(max_length=1000, description="`next` of the part before")] = None
    fields: Annotated[str | None, Field(max_length=2000, description="the columns wanted, with commas between")] = None
    sort: Annotated[str | None, Field(max_length=100, description="the column to sort by; -COLUMN: falling")] = None
    format: Annotated[Format | None, Field(description="in place of the field Accept")] = None


class Page(View):
    """Part of a list: `next` is the `cursor` of the following part, `next_url` its address; null at the end."""

    next: str | None
    next_url: str | None


CALLER_MARK: ContextVar[str] = ContextVar("caller_mark", default="")
"""Of the request in progress, the mark of who makes it; a cursor is of use to the same principal alone."""


def cursor_of(*place: Key) -> str:
    """Return the place of the last row of a part, opaque to clients."""
    marked = [CALLER_MARK.get(), *place]
    return base64.urlsafe_b64encode(json.dumps(marked).encode()).decode().rstrip("=")


def place_of(cursor: str | None, *types: type | tuple[type, ...]) -> Any:
    """Return the place that a cursor of this list names, a tuple of these types; None without a cursor.

    Raises: InvalidInputError.
    """
    if cursor is None:
        return None
    try:
        padding = "=" * (-len(cursor) % 4)
        place = json.loads(base64.b64decode(cursor + padding, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        place = None
    mark, *parts = place if isinstance(place, list) and place else [None]
    if mark != CALLER_MARK.get() or len(parts) != len(types) or not all(map(_is_of, parts, types)):
        raise InvalidInputError(
            f"cursor {cursor[:40]!r}: expected the `next` of an earlier page of this list, asked by you"
        )
    return tuple(parts)


def _is_of(part: object, kinds: type | tuple[type, ...]) -> bool:
    """Return whether a part of a place is of one of these types, and every database takes it."""
    if type(part) not in (kinds if isinstance(kinds, tuple) else (kinds,)):
        return False
    if isinstance(part, str):
        return is_storable(part)
    return not isinstance(part, int) or -INT64 <= part < INT64


def next_url(request: Request, cursor: str | None) -> str | None:
    """Return the address of the same list from the cursor on, as a path on this server."""
    if cursor is None:
        return None
    query: Mapping[str, str] = {**request.query_params, "cursor": cursor}
    return f"{request.url.path}?{urlencode(query)}"
