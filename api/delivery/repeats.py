"""Requests with an Idempotency-Key: one that is sent again gets the first answer, and changes nothing again.

A claim is stored before the request is answered, and the answer before the client has it. A server that is killed in
between leaves a claim that another request takes over after a minute; what then runs a second time changes nothing,
because routes that create something remember the key in the same transaction (`RequestKeyOf`).
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from anyio import CancelScope, CapacityLimiter
from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.access.caller import PRINCIPAL
from crosswind.api.access.scopes import Needs
from crosswind.api.body_check import Replay
from crosswind.api.idempotency import fingerprint
from crosswind.api.prefix import inner_path
from crosswind.api.problems import IN_PROGRESS, INVALID, problem
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.first_answers import FirstAnswer, InProgressError
from crosswind.data.schema.access import Scope as Permission
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.request_key import RequestKey

HEADER = "idempotency-key"
KEY = re.compile(r"[\x21-\x7e]{1,255}")
EXPECTED = "expected 1 to 255 visible ASCII characters"
KEPT_HEADERS = ("content-type", "location")
REPLAYED = ("idempotency-replayed", "true")
BODY_BYTES = 1024 * 1024  # a larger answer is not kept
AT_ONCE = 8  # looks at the catalog
SECRET = "/v1/tokens"  # noqa: S105 - the path of answers that are kept nowhere
SUCCESS = range(200, 300)


def takes_key(needs: Needs, path: str) -> bool:
    """Return whether a POST to this path heeds keys: it changes something, and its answer holds no secret."""
    need = needs.of("POST", path)
    return need is not None and need.scope is not Permission.READ and not path.startswith(SECRET)


class Repeats:
    """Answers requests whose key was used before with the first answer."""

    def __init__(self, app: ASGIApp, catalog: Catalog, needs: Needs) -> None:
        self.app = app
        self._catalog = catalog
        self._needs = needs
        self._limiter = CapacityLimiter(AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it was answered before."""
        key = Headers(scope=scope).get(HEADER) if scope["type"] == "http" and scope["method"] == "POST" else None
        if key is None or not takes_key(self._needs, inner_path(scope["path"], scope.get("root_path", ""))):
            await self.app(scope, receive, send)
            return
        if not KEY.fullmatch(key):
            errors = [{"field": f"header.{HEADER}", "value": repr(key)[:100], "expected": EXPECTED}]
            detail = f"header.{HEADER}: {EXPECTED}"
            refusal = problem(INVALID, detail, root_path=scope.get("root_path", ""), further={"errors": errors})
            await refusal(scope, receive, send)
            return
        body = await _body(receive)
        request = RequestKey(key, fingerprint(scope, body), scope["state"][PRINCIPAL].mark)
        await self._once(request, scope, Replay(body, receive), send)

    async def _once(self, request: RequestKey, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            first = await run_sync(self._claim, request, limiter=self._limiter)
        except InProgressError as error:
            await problem(IN_PROGRESS, str(error), root_path=scope.get("root_path", ""))(scope, receive, send)
        except InvalidInputError as error:
            await problem(INVALID, str(error), root_path=scope.get("root_path", ""))(scope, receive, send)
        else:
            await (self._answer(request, scope, receive, send) if first is None else _replay(first, send))

    async def _answer(self, request: RequestKey, scope: Scope, receive: Receive, send: Send) -> None:
        recorded = _Recorded(send, lambda answer: run_sync(self._settle, request, answer, limiter=self._limiter))
        try:
            await self.app(scope, receive, recorded)
        finally:
            if not recorded.is_kept:
                with CancelScope(shield=True):
                    await run_sync(self._release, request, limiter=self._limiter)

    def _claim(self, request: RequestKey) -> FirstAnswer | None:
        with self._catalog.write() as session:
            return session.first_answers.claim(request, self._catalog.clock())

    def _settle(self, request: RequestKey, answer: FirstAnswer) -> None:
        with self._catalog.write() as session:
            session.first_answers.settle(request, answer)

    def _release(self, request: RequestKey) -> None:
        with self._catalog.write() as session:
            session.first_answers.release(request)


@dataclass
class _Recorded:
    """Sends an answer, and keeps one of success before its end is sent."""

    send: Send
    keep: Callable[[FirstAnswer], Awaitable[None]]
    is_kept: bool = False
    start: Message = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.start = message
        elif message["type"] == "http.response.body" and len(self.body) <= BODY_BYTES:
            self.body += message.get("body", b"")
            if not message.get("more_body") and self._is_to_keep:
                await self.keep(self._whole)
                self.is_kept = True
        await self.send(message)

    @property
    def _is_to_keep(self) -> bool:
        return self.start.get("status") in SUCCESS and len(self.body) <= BODY_BYTES

    @property
    def _whole(self) -> FirstAnswer:
        headers = Headers(raw=self.start["headers"])
        kept = {name: headers[name] for name in KEPT_HEADERS if name in headers}
        return FirstAnswer(self.start["status"], kept, bytes(self.body))


async def _replay(answer: FirstAnswer, send: Send) -> None:
    pairs = [*answer.headers.items(), REPLAYED, ("content-length", str(len(answer.body)))]
    headers = [(name.encode(), value.encode("latin-1")) for name, value in pairs]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)
