"""Checks of a request's host, origin and caller, before anything of its body is read."""

import logging
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from crosswind.api.access.caller import PRINCIPAL, TOKEN_ID, Callers, UnauthorizedError
from crosswind.api.access.scopes import Needs
from crosswind.api.cross_site import CrossSite
from crosswind.api.paging import CALLER_MARK
from crosswind.api.prefix import inner_path
from crosswind.api.problems import FORBIDDEN, OUT_OF_SCOPE, UNAUTHORIZED, UNAVAILABLE, problem
from crosswind.api.settings import ServerSettings
from crosswind.data.catalog.database import NO_ANSWER

CHALLENGE = 'Bearer realm="crosswind", Basic realm="crosswind"'
LOGIN = "login"
log = logging.getLogger("crosswind.api")


class Authentication:
    """Refuses requests that address another host, come from another site, or whose caller may not make them."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, callers: Callers, needs: Needs) -> None:
        self.app = app
        self.settings = settings
        self._callers = callers
        self._needs = needs
        self._cross_site = CrossSite(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller in its state, or answer with a problem."""
        if scope["type"] == "http" and (refusal := await self._refusal(scope)):
            await refusal(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        root_path, headers = scope.get("root_path", ""), Headers(scope=scope)
        if reason := self._cross_site.refusal(scope["method"], headers):
            return problem(FORBIDDEN, reason, root_path=root_path)
        need = self._needs.of(scope["method"], inner_path(scope["path"], root_path))
        if need is None:
            return None
        try:
            caller = await self._callers.caller_of(scope)
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


def _unauthorized(scope: Scope, headers: Headers, detail: str) -> Response:
    """Return the way to the login page for a browser that opens a page, and a challenge for everybody else."""
    root_path = scope.get("root_path", "")
    if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
        path = inner_path(scope["path"], root_path)
        wanted = f"{path}?{scope['query_string'].decode('latin-1')}".rstrip("?")
        way = "../" * max(0, path.count("/") - 1) + LOGIN
        return RedirectResponse(f"{way}?next={quote(wanted, safe='')}", 303)
    return problem(UNAUTHORIZED, detail, root_path=root_path, headers={"WWW-Authenticate": CHALLENGE})
