"""Refusals as pages, for those who read them in a browser."""

import json
from importlib import import_module

from anyio.to_thread import run_sync
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.late_pages import PAGES
from crosswind.api.prefix import inner_path

PROBLEM = "application/problem+json"
DATA = (".json", ".csv")  # what ends so is read by programs, in a browser too, as is all of the API
API = "/v1/"


class ProblemPages:
    """Sends problem details as a page with the same status where the request accepts HTML."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        await self.app(scope, receive, _Answer(scope, receive, send).send if _is_read(scope) else send)


def _is_read(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] == "HEAD":
        return False
    path = inner_path(scope["path"], scope.get("root_path", ""))
    return (
        "text/html" in Headers(scope=scope).get("accept", "") and not path.startswith(API) and not path.endswith(DATA)
    )


class _Answer:
    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        """Send a message on, or keep it until the problem is whole."""
        if message["type"] == "http.response.start" and _is_problem(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._send_page(MutableHeaders(raw=self._start["headers"]))

    async def _send_page(self, headers: MutableHeaders) -> None:
        pages = await run_sync(import_module, PAGES)
        page = await run_sync(pages.refusal_page, self._scope, json.loads(self._body))
        for name in ("content-type", "content-length"):
            del headers[name]
        headers.append("vary", "Accept")
        page.raw_headers.extend(headers.raw)
        await page(self._scope, self._receive, self._send)


def _is_problem(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    return headers.get("content-type") == PROBLEM and "content-encoding" not in headers
