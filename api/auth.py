"""Checks of a request's host, origin and caller, before anything of its body is read."""

import logging
import math
from urllib.parse import quote

from anyio import CapacityLimiter, sleep
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from crosswind.api.access.attempts import TOKENS_FREE, TOKENS_MAX, Attempts, place_of
from crosswind.api.access.caller import PRINCIPAL, TOKEN_ID, BadTokenError, Callers, UnauthorizedError
from crosswind.api.access.scopes import Needs
from crosswind.api.cross_site import CrossSite
from crosswind.api.paging import CALLER_MARK
from crosswind.api.prefix import inner_path
from crosswind.api.problems import FORBIDDEN, LOGINS, OUT_OF_SCOPE, UNAUTHORIZED, UNAVAILABLE, problem
from crosswind.api.settings import ServerSettings
from crosswind.data.catalog.database import NO_ANSWER

CHALLENGE = 'Bearer realm="crosswind", Basic realm="crosswind"'
LOGIN = "login"
HELD_MAX = 100  # refusals that are held back at once
log = logging.getLogger("crosswind.api")


class Authentication:
    """Refuses requests that address another host, come from another site, or whose caller may not make them."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, callers: Callers, needs: Needs) -> None:
        self.app = app
        self.settings = settings
        self._callers = callers
        self._needs = needs
        self._cross_site = CrossSite(settings)
        self._attempts = Attempts(noun="token", failures_max=TOKENS_MAX, free=TOKENS_FREE)
        self._held = CapacityLimiter(HELD_MAX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller in its state, or answer with a problem."""
        if scope["type"] == "http" and (refusal := await self._refusal(scope)):
            await refusal(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if reason := self._cross_site.refusal(scope["method"], headers):
            return problem(FORBIDDEN, reason, root_path=scope.get("root_path", ""))
        return await self._refusal_of_caller(scope, headers)

    async def _refusal_of_caller(self, scope: Scope, headers: Headers) -> Response | None:
        root_path = scope.get("root_path", "")
        need = self._needs.of(scope["method"], inner_path(scope["path"], root_path))
        if need is None:
            return None
        try:
            caller = await self._callers.caller_of(scope)
        except BadTokenError as error:
            return await self._failed(scope, headers, str(error))
        except UnauthorizedError as error:
            return _unauthorized(scope, headers, str(error))
        except NO_ANSWER as error:
            log.error("the catalog does not answer whose token this is", exc_info=error)
            return problem(UNAVAILABLE, "the catalog does not answer", root_path=root_path)
        if reason := need.refusal(caller.principal):
            challenge = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{need.scope}"'}
            return problem(OUT_OF_SCOPE, reason, root_path=root_path, headers=challenge)
        scope.setdefault("state", {}).update({PRINCIPAL: caller.principal, TOKEN_ID: caller.token_id})
        CALLER_MARK.set(caller.principal.mark)
        return None

    async def _failed(self, scope: Scope, headers: Headers, reason: str) -> Response:
        """Return the refusal of a token that does not hold: later each time, and after many of one place another one.

        Tokens that hold are not affected, as a proxy's address is that of many.
        """
        place = place_of(scope)
        if wait := math.ceil(self._attempts.wait_seconds(place)):
            detail = f"too many tokens from {place} failed; of this one: {reason}"
            return problem(LOGINS, detail, root_path=scope.get("root_path", ""), headers={"Retry-After": str(wait)})
        delay = self._attempts.fail(place, reason)
        if delay and self._held.available_tokens > 0:
            async with self._held:
                await sleep(delay)
        return _unauthorized(scope, headers, reason)


def _unauthorized(scope: Scope, headers: Headers, detail: str) -> Response:
    """Return the way to the login page for a browser that opens a page, and a challenge for everybody else."""
    root_path = scope.get("root_path", "")
    if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
        path = inner_path(scope["path"], root_path)
        wanted = f"{path}?{scope['query_string'].decode('latin-1')}".rstrip("?")
        way = "../" * max(0, path.count("/") - 1) + LOGIN
        return RedirectResponse(f"{way}?next={quote(wanted, safe='')}", 303)
    return problem(UNAUTHORIZED, detail, root_path=root_path, headers={"WWW-Authenticate": CHALLENGE})
