"""The page on which a browser logs in and out; a cookie that holds a session's token says later who it is."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

from anyio import sleep
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from crosswind.api.access.attempts import Attempts, place_of
from crosswind.api.access.caller import Caller, Callers, UnauthorizedError
from crosswind.api.access.credentials import COOKIE, Credentials
from crosswind.api.access.oidc.provider import Provider
from crosswind.api.body_check import BodyRule
from crosswind.api.problems import LOGINS, UNAUTHORIZED
from crosswind.api.settings import ServerSettings
from crosswind.data.catalog.tokens import digest_of
from crosswind.data.schema.access import Scope, TokenUse
from crosswind.data.schema.answers.tokens import IssuedToken, Token
from crosswind.data.schema.errors import InvalidInputError, MalformedError, NotFoundError
from crosswind.data.store.store import Store

PATHS = LOGIN, LOGOUT = "/login", "/logout"
SESSION_SECONDS = 12 * 3600
router = APIRouter(include_in_schema=False)


def checked_form(body: bytes) -> dict[str, str]:
    """Return the fields of a form, each given once. Raises: MalformedError."""
    try:
        fields = parse_qs(body.decode("ascii"), strict_parsing=bool(body), max_num_fields=8, errors="strict")
    except ValueError as error:
        raise MalformedError(f"body: expected a form: {error}") from error
    if any(len(values) > 1 or not values[0].isprintable() for values in fields.values()):
        raise MalformedError("body: expected a form whose fields are printable and given once")
    return {name: values[0] for name, values in fields.items()}


def check_form(body: bytes) -> None:
    """Check a body as `checked_form` does. Raises: MalformedError."""
    checked_form(body)


FORM = BodyRule("application/x-www-form-urlencoded", 4096, check_form)


async def _form(request: Request) -> dict[str, str]:
    return checked_form(await request.body())


Form = Annotated[dict[str, str], Depends(_form)]


@router.get(LOGIN)
async def show_login(request: Request, next: str = "", link: str = "") -> HTMLResponse:  # noqa: A002 - the field's name
    """Return the form, or who is logged in. A link is used when its button is pressed, so no preview uses it up."""
    if not link and (caller := await _caller_or_none(request)):
        is_session = Credentials.of(request.scope["headers"]).session is not None
        return login_page(
            request, name=caller.principal.name, is_session=is_session, is_admin=caller.principal.allows(Scope.ADMIN)
        )
    return login_page(request, link=link[:500], next=next[:2000])


@router.post(LOGIN)
async def log_in(request: Request, form: Form) -> Response:
    """Begin a session for whoever holds the token or the link, and lead on to the page that was wanted."""
    attempts: Attempts = request.app.state.attempts
    place, wanted = place_of(request.scope), form.get("next", "")
    if wait := attempts.wait_seconds(place):
        failure = f"Too many failed logins from {place}: try again in {math.ceil(wait)} s."
        return login_page(request, LOGINS.status, {"Retry-After": str(math.ceil(wait))}, next=wanted, failure=failure)
    try:
        session = await _begin(request, form)
    except (UnauthorizedError, NotFoundError) as error:
        await sleep(attempts.fail(place, str(error)))
        failure = f"{str(error)[:1].upper()}{str(error)[1:]}."
        return login_page(request, UNAUTHORIZED.status, next=wanted, failure=failure)
    answer = RedirectResponse(_way_to(wanted), 303)
    set_cookie(request, answer, session.secret, SESSION_SECONDS)
    return answer


@router.post(LOGOUT)
async def log_out(request: Request) -> Response:
    """End this browser's session, on the server as well."""
    secret, ended = Credentials.of(request.scope["headers"]).session, None
    if secret is not None:
        ended = await run_sync(_end, request.app.state.client.store, secret)
        request.app.state.tokens.forget()
    answer: Response = RedirectResponse(LOGIN.lstrip("/"), 303)
    provider: Provider | None = request.app.state.provider
    if provider is not None and ended is not None and provider.began(ended.created_by):
        answer = login_page(request, elsewhere=await run_sync(provider.logout_url, limiter=provider.places) or "")
    set_cookie(request, answer, "", 0)
    return answer


async def _caller_or_none(request: Request) -> Caller | None:
    callers: Callers = request.app.state.callers
    try:
        return await callers.caller_of(request.scope)
    except UnauthorizedError:
        return None


async def _begin(request: Request, form: dict[str, str]) -> IssuedToken:
    """Return a new session. Raises: UnauthorizedError, NotFoundError, InvalidInputError."""
    store: Store = request.app.state.client.store
    callers: Callers = request.app.state.callers
    if link := form.get("link"):
        return await run_sync(_session_by_link, store, link)
    if not (secret := form.get("token", "").strip()):
        raise InvalidInputError("form: expected the field `token` or `link`")
    return await run_sync(_session_of, store, await callers.caller_with(secret))


def _session_by_link(store: Store, secret: str) -> IssuedToken:
    with store.catalog.write() as session:
        link = session.tokens.claim(digest_of(secret))
        return session.tokens.issue(
            *(link.principal, SESSION_SECONDS),
            created_by=link.created_by,
            use=TokenUse.SESSION,
            parent_id=link.parent_id,
        )


def _session_of(store: Store, caller: Caller) -> IssuedToken:
    principal = caller.principal
    with store.catalog.write() as session:
        return session.tokens.issue(
            *(principal, SESSION_SECONDS), created_by=str(principal), use=TokenUse.SESSION, parent_id=caller.token_id
        )


def _end(store: Store, secret: str) -> Token | None:
    """End the session with this secret, and return it; None where there is none."""
    with store.catalog.write() as session:
        token = session.tokens.of_digest(digest_of(secret))
        if token is None or token.use is not TokenUse.SESSION:
            return None
        return session.tokens.revoke(token.token_id, by=str(token.principal))


@dataclass(frozen=True)
class Cookie:
    """A cookie of this server's paths below one of them; `lax` ones also come when another site leads here.

    `is_secure` ones are for TLS alone, also where the proxy does not say that it speaks TLS.
    """

    name: str = COOKIE
    below: str = "/"
    samesite: Literal["lax", "strict"] = "strict"
    is_secure: bool = False


SESSION = Cookie()


def set_cookie(request: Request, answer: Response, secret: str, seconds: int, *, cookie: Cookie = SESSION) -> None:
    """Set a cookie; with 0 seconds, remove it."""
    settings: ServerSettings = request.app.state.settings
    is_secure = cookie.is_secure or "https" in {request.scope["scheme"], request.headers.get("x-forwarded-proto", "")}
    path = f"{settings.root_path}{cookie.below}".rstrip("/") or "/"
    answer.set_cookie(
        cookie.name, secret, seconds, path=path, secure=is_secure, httponly=True, samesite=cookie.samesite
    )


def _way_to(wanted: str) -> str:
    """Return the way to a page of this server: it begins with `./`, so that it cannot name another server."""
    path = wanted if wanted.startswith("/") else ""
    return "./" + path.lstrip("/\\")


def login_page(
    request: Request,
    status: int = 200,
    headers: dict[str, str] | None = None,
    *,
    root: str = "./",
    onward: str | None = None,
    **facts: Any,
) -> HTMLResponse:
    """Return the login page with these facts; with `onward`, one that leads on to that page at once."""
    from crosswind.dashboards.pages.render import Login, render_login  # noqa: PLC0415 - heavy, as all pages are

    provider: Provider | None = request.app.state.provider
    shown: dict[str, Any] = (
        {} if provider is None else {"provider": provider.settings.shown, "provider_url": provider.begin_url}
    )
    way = "" if onward is None else root + _way_to(onward).removeprefix("./")
    text = render_login(Login(**shown, **facts, onward=way), root=root)
    return HTMLResponse(text, status, {"Cache-Control": "no-store", **(headers or {})})
