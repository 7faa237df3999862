"""Checks of a request's host, origin and token."""

import base64
import binascii
import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from crosswind.api.cross_site import CrossSite
from crosswind.api.prefix import inner_path
from crosswind.api.problems import FORBIDDEN, UNAUTHORIZED, problem
from crosswind.api.settings import ServerSettings

OPEN_PATHS = ("/healthz", "/problems/")  # answered without a token
CHALLENGE = 'Bearer realm="crosswind", Basic realm="crosswind"'


class Authentication:
    """Refuses requests that address another host, come from another site, or lack the token."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app = app
        self.settings = settings
        self._cross_site = CrossSite(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer with a problem."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        root_path, headers = scope.get("root_path", ""), Headers(scope=scope)
        if refusal := self._cross_site.refusal(scope["method"], headers):
            await problem(FORBIDDEN, refusal, root_path=root_path)(scope, receive, send)
        elif not self._is_authorized(inner_path(scope["path"], root_path), headers):
            detail = "this server requires its token"
            answer = problem(UNAUTHORIZED, detail, root_path=root_path, headers={"WWW-Authenticate": CHALLENGE})
            await answer(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _is_authorized(self, path: str, headers: Headers) -> bool:
        if self.settings.token is None or path == OPEN_PATHS[0] or path.startswith(OPEN_PATHS[1]):
            return True
        given = credentials(headers.get("authorization", ""))
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.settings.token.encode())


def credentials(authorization: str) -> str:
    """Return the token in an Authorization header: after Bearer, or the password of Basic, which browsers ask for."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""
