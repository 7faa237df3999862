"""Appearance of things on the wire: the words that all resources share."""

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from fastapi import Path, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, StringConstraints

from crosswind.data.schema.errors import InvalidInputError

INT64 = 2**63
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$", strict=True)]
Id = Annotated[Name, Path()]
Value = (
    StrictBool
    | Annotated[StrictInt, Field(ge=-INT64, lt=INT64)]
    | Annotated[StrictFloat, Field(allow_inf_nan=False)]
    | Annotated[StrictStr, StringConstraints(max_length=1000)]
)
Values = Annotated[dict[Name, Value], Field(max_length=200)]


class Ask(BaseModel):
    """A client's request: no field that is not known, no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Part(BaseModel):
    """The part of a list that is asked for."""

    limit: Annotated[int, Field(ge=1, le=500, description="how many rows to return at most")] = 50
    cursor: Annotated[str | None, Field(max_length=1000, description="`next` of the part before")] = None


class View(BaseModel):
    """The server's answer; a number that is missing, infinite or not a number is null."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class Page(View):
    """Part of a list: `next` is the `cursor` of the following part, `next_url` its address; null at the end."""

    next: str | None
    next_url: str | None


def plain_json(value: object) -> Response:
    """A dataclass of plain values, whose view the route declares, sent without being checked field by field.

    For answers that many ask for; what is missing, infinite or not a number is null, as in views.
    """
    return Response(msgspec.json.encode(value, enc_hook=_listed), media_type="application/json")


def _listed(value: Any) -> Any:
    if hasattr(value, "tolist"):  # an array, or a number of one
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON")


def rfc3339(ns: int | None) -> str | None:
    """Nanoseconds UTC as `2026-01-02T03:04:05.000000006Z`; None where unknown or beyond the calendar."""
    if ns is None:
        return None
    try:
        moment = datetime.fromtimestamp(ns // 1_000_000_000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns % 1_000_000_000:09d}Z"


def is_plain(text: str) -> bool:
    """Return whether every database takes this text: no NUL, no lone surrogate."""
    return "\0" not in text and text.encode("utf-8", "ignore").decode() == text


def cursor_of(*place: int | str) -> str:
    """The place of the last row seen, opaque to clients."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def place_of(cursor: str | None, *types: type) -> Any:
    """The place that a cursor of this list names, a tuple of these types, or None without one.

    Raises: InvalidInputError.
    """
    if cursor is None:
        return None
    try:
        padding = "=" * (-len(cursor) % 4)
        place = json.loads(base64.b64decode(cursor + padding, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        place = None
    parts = place if isinstance(place, list) else []
    if [type(part) for part in parts] != list(types) or not all(map(_can_be_stored, parts)):
        raise InvalidInputError(f"cursor {cursor[:40]!r}: expected the `next` of an earlier page of this list")
    return tuple(parts)


def _can_be_stored(part: int | str) -> bool:
    return is_plain(part) if isinstance(part, str) else -INT64 <= part < INT64


def next_url(request: Request, cursor: str | None) -> str | None:
    """The same list from the cursor on, as a path on this server."""
    if cursor is None:
        return None
    query: Mapping[str, str] = {**request.query_params, "cursor": cursor}
    return f"{request.url.path}?{urlencode(query)}"


async def refuse_unknown_query(request: Request) -> None:
    """Refuses query parameters that this route does not have, or that stand there twice.

    Raises: InvalidInputError.
    """
    if not request.scope["query_string"]:
        return
    path = request.scope["route"].path
    operation = request.app.openapi()["paths"].get(path, {}).get(request.method.lower(), {})
    parameters = sorted(
        parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"
    )
    expected = f"expected {', '.join(parameters)}" if parameters else "this resource has none"
    for name in request.query_params:
        if name not in parameters:
            raise InvalidInputError(f"query parameter {name[:60]!r} is unknown: {expected}")
        if len(request.query_params.getlist(name)) > 1:
            raise InvalidInputError(f"query parameter {name!r} is given twice: expected it once")
