"""Checks of a request's host, origin and token."""

import base64
import binascii
import hmac
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from crosswind.api.prefix import inner_path
from crosswind.api.problems import FORBIDDEN, UNAUTHORIZED, problem, shown
from crosswind.api.settings import ServerSettings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN_PATHS = ("/healthz", "/problems/")  # answered without a token
CHALLENGE = 'Bearer realm="crosswind", Basic realm="crosswind"'


class Authentication:
    """Refuses requests that address another host, come from another site, or lack the token."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app = app
        self.settings = settings
        self._host_names = settings.host_names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer with a problem."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        root_path, headers = scope.get("root_path", ""), Headers(scope=scope)
        if refusal := self._cross_site(scope["method"], headers):
            await problem(FORBIDDEN, refusal, root_path=root_path)(scope, receive, send)
        elif not self._is_authorized(inner_path(scope["path"], root_path), headers):
            detail = "this server requires its token"
            answer = problem(UNAUTHORIZED, detail, root_path=root_path, headers={"WWW-Authenticate": CHALLENGE})
            await answer(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _cross_site(self, method: str, headers: Headers) -> str | None:
        """Return why the request seems to come from another site, or None.

        A page elsewhere may have its own name resolve to our address (DNS rebinding), or send a form here.
        """
        host = host_name(headers.get("host", ""))
        if self._host_names is not None and host not in self._host_names:
            return f"host {shown(host)} is not one of {', '.join(sorted(self._host_names))}"
        origin = headers.get("origin")
        if origin is None or method in SAFE_METHODS:
            return None
        caller = host_name(urlsplit(origin).netloc) if origin != "null" else origin
        if caller == host or caller in {name.lower() for name in self.settings.hosts}:
            return None
        return f"origin {shown(origin)} is another site than {shown(host)}"

    def _is_authorized(self, path: str, headers: Headers) -> bool:
        if self.settings.token is None or path == OPEN_PATHS[0] or path.startswith(OPEN_PATHS[1]):
            return True
        given = credentials(headers.get("authorization", ""))
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.settings.token.encode())


def host_name(host: str) -> str:
    """Return the name in a Host header: lower case, no port; an IPv6 address keeps its brackets."""
    name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
    return name.lower().rstrip(".")


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
