"""The way of a browser to the provider where people log in, and back."""

import logging
import math
import time
from typing import Any

from anyio import sleep
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from crosswind.api.access.attempts import Attempts, place_of
from crosswind.api.access.caller import UnauthorizedError
from crosswind.api.access.oidc.id_token import claims_of
from crosswind.api.access.oidc.pending import COOKIE, SECONDS, Pending
from crosswind.api.access.oidc.people import check_no_collision, person_of
from crosswind.api.access.oidc.provider import Provider
from crosswind.api.problems import LOGINS, UNAUTHORIZED, UNAVAILABLE
from crosswind.api.routes.login import SESSION_SECONDS, Cookie, login_page, set_cookie
from crosswind.data.schema.access import TokenUse
from crosswind.data.schema.answers.tokens import IssuedToken
from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from crosswind.data.store.store import Store

PATH, CALLBACK = "/login/oidc", "/login/oidc/callback"
NOT_BEGUN = "this login was not begun in this browser, or too long ago: begin it again"
log = logging.getLogger("crosswind.access")
router = APIRouter(include_in_schema=False)


def provider_of(request: Request) -> Provider:
    """Return the provider of this server. Raises: NotFoundError where it has none."""
    provider: Provider | None = request.app.state.provider
    if provider is None:
        raise NotFoundError("this server has no login at a provider: log in with a token")
    return provider


def pending_cookie(provider: Provider) -> Cookie:
    """Return the cookie of a login in progress: the provider leads back here from its own site."""
    return Cookie(COOKIE, PATH, "lax", provider.settings.is_over_tls)


@router.get(PATH)
async def begin_login(request: Request, next: str = "") -> Response:  # noqa: A002 - the field's name
    """Lead the browser to the provider, with what its answer must bring back in a cookie."""
    provider, pending = provider_of(request), Pending.new(next)
    try:
        address = await run_sync(pending.address, provider, limiter=provider.places)
    except UnavailableError as error:
        return _unavailable(request, error, next)
    answer = RedirectResponse(address, 303, {"Cache-Control": "no-store"})
    set_cookie(request, answer, pending.cookie(), SECONDS, cookie=pending_cookie(provider))
    return answer


@router.get(CALLBACK)
async def end_login(request: Request) -> Response:
    """Begin a session for whoever the provider names, and lead on to the page that was wanted."""
    provider = provider_of(request)
    attempts: Attempts = request.app.state.attempts
    place = place_of(request.scope)
    if wait := math.ceil(attempts.wait_seconds(place)):
        failure = f"Too many failed logins from {place}: try again in {wait} s."
        return _page(request, LOGINS.status, {"Retry-After": str(wait)}, failure=failure)
    pending = Pending.of_cookie(request.cookies.get(COOKIE, ""))
    try:
        code = _code(request, provider, pending)
        made = await run_sync(_session_for, request.app.state.client.store, provider, *code, limiter=provider.places)
    except UnavailableError as error:
        answer = _unavailable(request, error, pending.next if pending else "")
    except (UnauthorizedError, InvalidInputError, ConflictError) as error:
        await sleep(attempts.fail(place, str(error)))
        answer = _page(request, UNAUTHORIZED.status, failure=f"{str(error)[:1].upper()}{str(error)[1:]}.")
    else:
        # The session's cookie is for our own pages alone, so that this one has to lead on: the provider did to here.
        answer = _page(request, 200, onward=pending.next if pending else "")
        set_cookie(
            request, answer, made.secret, SESSION_SECONDS, cookie=Cookie(is_secure=provider.settings.is_over_tls)
        )
    set_cookie(request, answer, "", 0, cookie=pending_cookie(provider))
    return answer


def _code(request: Request, provider: Provider, pending: Pending | None) -> tuple[str, Pending]:
    """Return the code of an answer to this browser's login. Raises: UnauthorizedError."""
    query = request.query_params
    if pending is None or not pending.is_answered_by(query.get("state", "")):
        raise UnauthorizedError(NOT_BEGUN)
    issuer = query.get("iss")
    must_say = provider.known_metadata.get("authorization_response_iss_parameter_supported") is True
    if issuer != provider.settings.issuer and (issuer is not None or must_say):  # RFC 9207
        raise UnauthorizedError("the answer is another provider's")
    if "error" in query:
        raise UnauthorizedError(f"{provider.settings.shown} refused the login: {query['error']!r:.80}")
    if not (code := query.get("code", "")):
        raise UnauthorizedError(f"{provider.settings.shown} sent no code")
    return code, pending


def _session_for(store: Store, provider: Provider, code: str, pending: Pending) -> IssuedToken:
    """Return a session of the person whom the provider names for a code.

    Raises: UnauthorizedError, UnavailableError.
    """
    settings = provider.settings
    tokens = provider.tokens_for(code, pending.verifier)
    claims = claims_of(provider, tokens, pending.nonce)
    wanted = {settings.user_claim, settings.groups_claim, settings.accounts_claim} - {None}
    if not wanted <= claims.keys() and tokens.get("access_token"):
        claims = _completed(provider, claims, str(tokens["access_token"]))
    somebody = person_of(claims, settings)
    with store.catalog.write() as session:
        check_no_collision(session, somebody, time.time_ns())
        return session.tokens.issue(somebody, SESSION_SECONDS, created_by=provider.maker, use=TokenUse.SESSION)


def _completed(provider: Provider, claims: dict[str, Any], access_token: str) -> dict[str, Any]:
    """Return the claims with those that only the provider's other door has; it must speak of the same person."""
    further = provider.user_facts(access_token)
    if further and further.get("sub") != claims["sub"]:
        raise UnauthorizedError(f"{provider.settings.shown} speaks of another person than its ID token")
    return {**further, **claims}


def _unavailable(request: Request, error: UnavailableError, wanted: str) -> Response:
    if provider_of(request).is_news(error):
        log.warning("nobody can log in at the provider: %s", error)
    failure = f"{str(error)[:1].upper()}{str(error)[1:]}. Try again in a moment, or log in with a token."
    return _page(request, UNAVAILABLE.status, {"Retry-After": "5"}, next=wanted, failure=failure)


def _page(request: Request, status: int, headers: dict[str, str] | None = None, **facts: Any) -> Response:
    depth = request.scope["path"].removeprefix(request.scope.get("root_path", "")).count("/") - 1
    return login_page(request, status, headers, root="../" * depth, **facts)
