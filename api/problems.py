"""Refusals as RFC 9457 problem details, and the pages that explain them."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from crosswind.api.quota import QuotaError
from crosswind.api.telemetry import route_of
from crosswind.data.catalog.database import NO_ANSWER, DamagedCatalogError
from crosswind.data.schema.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    PausedError,
    ProjectError,
    UnavailableError,
)

router = APIRouter(prefix="/problems", include_in_schema=False)
log = logging.getLogger("crosswind.api")
SHOWN_CHARACTERS = 100  # of a value that was refused
SHOWN_ERRORS = 20


@dataclass(frozen=True)
class Kind:
    """One kind of refusal: its name in the type URI, its status, its remedy, and when to try again."""

    name: str
    status: int
    title: str
    remedy: str
    retry_seconds: int | None = None


MALFORMED = Kind("malformed", 400, "The request cannot be read", "Send UTF-8 JSON as docs/api.md describes it.")
UNAUTHORIZED = Kind(
    *("unauthorized", 401, "A token is needed"),
    "Send `Authorization: Bearer TOKEN` or `X-Crosswind-Token: TOKEN`, or log in at /login.",
)
FORBIDDEN = Kind("forbidden", 403, "Wrong host or site", "Use a host name of the server, and its own pages.")
OUT_OF_SCOPE = Kind(
    *("out-of-scope", 403, "You may not do this"),
    "Use a token with the scope or role that `detail` names (`crosswind token create` makes one), or ask the owner.",
)
NOT_FOUND = Kind("not-found", 404, "Not found", "Check the id or path against the list above it.")
METHOD = Kind("method-not-allowed", 405, "Method not allowed", "Use a method that the Allow header names.")
LOGINS = Kind("too-many-logins", 429, "Too many failed logins", "Wait as long as Retry-After says.")
SLOW = Kind("too-slow", 408, "The request took too long to arrive", "Send it again, over a faster connection.", 5)
CONFLICT = Kind("conflict", 409, "Conflict with what is stored", "Read the present state, then decide again.")
IN_PROGRESS = Kind(
    *("in-progress", 409, "The same request is in progress"),
    "Send it again with the same Idempotency-Key: the answer is then the first one's.",
    1,
)
PAUSED = Kind("paused", 409, "The study is paused", "Ask again later, or resume the study; results are taken.", 30)
QUOTA = Kind("quota", 429, "A day's quota is used up", "Send the rest once Retry-After is over.")
TOO_LARGE = Kind("too-large", 413, "The request is too large", "Send less at once.")
ADDRESS = Kind("address-too-long", 414, "The address is too long", "Send a shorter path and query.")
MEDIA_TYPE = Kind("unsupported-media-type", 415, "Unsupported format", "Send a format that `detail` names.")
INVALID = Kind("invalid-input", 422, "A value is invalid", "Change the values that `detail` and `errors` name.")
TOO_MANY = Kind("too-many-connections", 429, "Too many connections", "Use fewer connections at once, and keep them.", 5)
HEAD = Kind(
    "head-too-large", 431, "The header fields are too large", "Send fewer or shorter header fields and cookies."
)
INTERNAL = Kind("internal", 500, "The server failed", "Look for the reference in the server's log, and report it.")
UNAVAILABLE = Kind("unavailable", 503, "Temporarily unavailable", "Try again; nothing was changed.", 5)
BUSY = Kind("busy", 503, "The server is busy", "Try again; nothing was changed.", 2)
KINDS = (
    *(MALFORMED, UNAUTHORIZED, FORBIDDEN, OUT_OF_SCOPE, NOT_FOUND, METHOD, LOGINS, SLOW, CONFLICT, IN_PROGRESS, PAUSED),
    *(QUOTA, TOO_LARGE, ADDRESS, MEDIA_TYPE, INVALID, TOO_MANY, HEAD, INTERNAL, UNAVAILABLE, BUSY),
)
# Without MalformedError: body_check.py parses requests, so a route meets a malformed file of the store, whose name is
# private.
OF_ERROR: Mapping[type[ProjectError], Kind] = {
    UnavailableError: UNAVAILABLE,
    NotFoundError: NOT_FOUND,
    ForbiddenError: OUT_OF_SCOPE,
    ConflictError: CONFLICT,
    PausedError: PAUSED,
    InvalidInputError: INVALID,
}
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


def problem(
    kind: Kind,
    detail: str,
    *,
    root_path: str = "",
    headers: Mapping[str, str] = NO_HEADERS,
    further: Mapping[str, object] = NO_HEADERS,
) -> Response:
    """Return the refusal as a response; `further` members are added to those of RFC 9457."""
    facts = content_of(kind, detail, root_path)
    retry = {} if kind.retry_seconds is None else {"Retry-After": str(kind.retry_seconds)}
    return JSONResponse(
        {**facts, **further}, kind.status, headers={**retry, **headers}, media_type="application/problem+json"
    )


def content_of(kind: Kind, detail: str, root_path: str) -> dict[str, str | int]:
    """Return the members that every problem has."""
    return {"type": f"{root_path}/problems/{kind.name}", "title": kind.title, "status": kind.status, "detail": detail}


def add_handlers(app: FastAPI) -> None:
    """Turn every error of a route into a problem."""
    for refusal in OF_ERROR:
        app.add_exception_handler(refusal, _refused)
    app.add_exception_handler(QuotaError, _over_quota)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _by_status)
    app.add_exception_handler(DamagedCatalogError, _damaged)
    for error in NO_ANSWER:
        app.add_exception_handler(error, _no_database)


@router.get("/{name}")
def explain_problem(name: str) -> PlainTextResponse:
    """Return the meaning of a problem type and its remedy."""
    for kind in KINDS:
        if kind.name == name:
            return PlainTextResponse(f"{kind.title} (HTTP {kind.status})\n\n{kind.remedy}\n")
    raise NotFoundError(f"problem type {name!r:.{SHOWN_CHARACTERS}}: expected {', '.join(kind.name for kind in KINDS)}")


def _refused(request: Request, error: Exception) -> Response:
    kind = next(OF_ERROR[error_type] for error_type in type(error).__mro__ if error_type in OF_ERROR)
    return problem(kind, str(error), root_path=_root_path(request))


def _over_quota(request: Request, error: Exception) -> Response:
    retry = {"Retry-After": str(error.retry_seconds)} if isinstance(error, QuotaError) else {}
    return problem(QUOTA, str(error), root_path=_root_path(request), headers=retry)


def _not_valid(request: Request, error: Exception) -> Response:
    mistakes = error.errors() if isinstance(error, RequestValidationError) else ()
    errors = [_field_error(mistake) for mistake in mistakes[:SHOWN_ERRORS]]
    detail = "; ".join(f"{fault['field']}: {fault['expected']}" for fault in errors)
    return problem(INVALID, detail, root_path=_root_path(request), further={"errors": errors})


def _field_error(error: Mapping[str, object]) -> dict[str, str]:
    place = error.get("loc")
    parts = place if isinstance(place, Sequence) else ()
    value = "" if error.get("type") == "missing" else shown(error.get("input"))
    return {"field": _shortened(".".join(map(str, parts))), "value": value, "expected": str(error.get("msg", ""))}


def shown(value: object) -> str:
    """Return a refused value as text, shortened."""
    if isinstance(value, dict | list):
        return f"{type(value).__name__} of {len(value)}"
    text = value[: SHOWN_CHARACTERS + 1] if isinstance(value, str) else value
    return _shortened(repr(text) if isinstance(text, str) else str(text))


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _by_status(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = (error.headers if isinstance(error, HTTPException) else None) or {}
    kind = _first(KINDS, status)
    path = _shortened(request.url.path)
    detail = {404: f"no page or resource at {path}", 405: f"{request.method} is not allowed at {path}"}
    said = error.detail if isinstance(error, HTTPException) else ""
    return problem(kind, detail.get(status, said), root_path=_root_path(request), headers=headers)


def _first(kinds: Iterable[Kind], status: int) -> Kind:
    return next((kind for kind in kinds if kind.status == status), MALFORMED if status < 500 else INTERNAL)


def _no_database(request: Request, error: Exception) -> Response:
    log.error("the catalog does not answer %s %s", request.method, route_of(request.scope), exc_info=error)
    return problem(UNAVAILABLE, "the catalog does not answer", root_path=_root_path(request))


def _damaged(request: Request, error: Exception) -> Response:
    log.error("%s", error)
    return problem(
        UNAVAILABLE, "the catalog is damaged; the server's log says what to do", root_path=_root_path(request)
    )


def _root_path(request: Request) -> str:
    return str(request.scope.get("root_path", ""))
