"""Handling of every answer on its way out: security headers, and unexpected errors."""

import logging
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.observe.correlation import current
from crosswind.api.problems import INTERNAL, problem
from crosswind.api.telemetry import route_of
from crosswind.data.schema.run import new_ulid

log = logging.getLogger("crosswind.api")

# Plotly sets style attributes, and offers figures as data: and blob: images; it needs no inline script.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'self'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

HSTS = (b"strict-transport-security", b"max-age=31536000")


def is_over_tls(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a proxy says that the browser speaks TLS to it.

    A client that says so itself gets nothing but a header that browsers ignore where there is no TLS.
    """
    return any(name == b"x-forwarded-proto" and value.strip().lower() == b"https" for name, value in headers)


class SecurityHeaders:
    """Adds the security headers that an answer does not set itself."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        further = RAW_HEADERS
        if scope["type"] == "http" and is_over_tls(scope["headers"]):
            further = [*RAW_HEADERS, HSTS]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                names = {name for name, _ in own}  # lower case, as ASGI has them
                message["headers"] = [*own, *(header for header in further if header[0] not in names)]
            await send(message)

        await self.app(scope, receive, send_with_headers)


class FailureHandler:
    """Turns an unexpected error into a problem without private details, and logs the details."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        has_started = False

        async def watch(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self.app(scope, receive, watch)
        except Exception:
            request = current()
            reference = new_ulid() if request is None else request.request_id
            log.exception("%s %s failed, reference %s", scope.get("method"), route_of(scope), reference)
            if has_started or scope["type"] != "http":
                raise
            detail = f"the server's log has details under {reference}"
            answer = problem(INTERNAL, detail, root_path=scope.get("root_path", ""), further={"reference": reference})
            await answer(scope, receive, send)
