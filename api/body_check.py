"""Checks of a request's body: media type, size, time to arrive, and shape of JSON."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from anyio import CapacityLimiter, fail_after
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.auth import SAFE_METHODS
from crosswind.api.prefix import inner_path
from crosswind.api.problems import MALFORMED, MEDIA_TYPE, SLOW, TOO_LARGE, Kind, problem, shown
from crosswind.api.wire import is_storable
from crosswind.data.schema.errors import MalformedError

DEPTH = 32
DRAINED = 8  # times the limit that is read at most
CUT_OFF = (TOO_LARGE, SLOW)


@dataclass(frozen=True)
class BodyRule:
    """Limits on a route's body: media types, size, a `check` of its content, and how many at once."""

    media_type: str  # or several: with commas between them
    limit_bytes: int
    check: Callable[[bytes], None]
    at_once: float = math.inf
    seconds: float = math.inf  # for the whole body to arrive


NO_RULES: Mapping[str, BodyRule] = MappingProxyType({})


class BodyCheck:
    """Reads the body of a request by the rule of its path, and refuses a body that breaks it.

    The default rule is plain, finite, shallow JSON of at most `limit_bytes`; `rules` are those of other paths.
    """

    def __init__(self, app: ASGIApp, limit_bytes: int, rules: Mapping[str, BodyRule] = NO_RULES) -> None:
        self.app = app
        json_rule = BodyRule("application/json", limit_bytes, check_json)
        self._default = json_rule, _limiter(json_rule)
        self._rules = {path: (rule, _limiter(rule)) for path, rule in rules.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its whole body, or answer with a problem."""
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self.app(scope, receive, send)
            return
        root_path = scope.get("root_path", "")
        rule, limiter = self._rules.get(inner_path(scope["path"], root_path), self._default)
        if limiter is None:
            await self._pass(rule, scope, receive, send)
            return
        async with limiter:
            await self._pass(rule, scope, receive, send)

    async def _pass(self, rule: BodyRule, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await _read_in_time(receive, rule)
            if body is None:
                return
            refusal = _refusal(body, Headers(scope=scope).get("content-type", ""), rule)
        except TimeoutError:
            body, refusal = b"", (SLOW, f"body: expected all of it within {rule.seconds:g} s")
        if refusal:
            headers = {"Connection": "close"} if refusal[0] in CUT_OFF else {}  # the rest is not read any more
            answer = problem(*refusal, root_path=scope.get("root_path", ""), headers=headers)
            await answer(scope, receive, send)
            return
        await self.app(scope, _Replay(body, receive), send)


def _limiter(rule: BodyRule) -> CapacityLimiter | None:
    """Return the rule's limiter; None, which costs a request less, if it has no limit."""
    return None if math.isinf(rule.at_once) else CapacityLimiter(rule.at_once)


async def _read_in_time(receive: Receive, rule: BodyRule) -> bytes | None:
    """Return the body as `_read` does. Raises: TimeoutError."""
    if math.isinf(rule.seconds):
        return await _read(receive, rule)
    with fail_after(rule.seconds):
        return await _read(receive, rule)


async def _read(receive: Receive, rule: BodyRule) -> bytes | None:
    """Return the body, of a too large one a bit more than the limit, or None when the client disconnected.

    More of a too large body is read and thrown away, because many clients read an answer only after sending all.
    """
    body, seen = bytearray(), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunk = message.get("body", b"")
        seen += len(chunk)
        if len(body) <= rule.limit_bytes:
            body += chunk
        if not message.get("more_body") or seen > DRAINED * rule.limit_bytes:
            return bytes(body)


def _refusal(body: bytes, content_type: str, rule: BodyRule) -> tuple[Kind, str] | None:
    if len(body) > rule.limit_bytes:
        return TOO_LARGE, f"body: expected at most {rule.limit_bytes} bytes"
    if not body:
        return None
    if content_type.partition(";")[0].strip().lower() not in rule.media_type.split(", "):
        return MEDIA_TYPE, f"content type {shown(content_type)}: expected {rule.media_type}"
    try:
        rule.check(body)
    except MalformedError as error:
        return MALFORMED, str(error)
    return None


class _Replay:
    """Receives a body that was already read, then the next messages of the client."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def check_json(body: bytes) -> None:
    """Check a body as `checked_json` does. Raises: MalformedError."""
    checked_json(body)


def checked_json(body: bytes) -> object:
    """Return the value of a body in JSON with finite numbers, valid Unicode and at most DEPTH levels.

    Raises: MalformedError.
    """
    try:
        value: object = json.loads(body.decode(), parse_constant=_no_constant, parse_float=_finite)
    except RecursionError as error:
        raise MalformedError(f"body: nested deeper than {DEPTH} levels") from error
    except (UnicodeDecodeError, ValueError) as error:
        raise MalformedError(f"body: expected JSON in UTF-8: {str(error)[:200]}") from error
    if b"\\u" not in body and body.count(b"[") + body.count(b"{") < DEPTH:
        return value  # a NUL or half a character can only be escaped in JSON, and nothing here is deep
    level: list[object] = [value]
    for _ in range(DEPTH):
        for text in level:
            if isinstance(text, str) and not is_storable(text):
                raise MalformedError(f"body: text {shown(text)} holds a NUL or half a character")
        level = [part for parent in level for part in _parts(parent)]
        if not level:
            return value
    raise MalformedError(f"body: nested deeper than {DEPTH} levels")


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number; leave a missing number out, or send null")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"number {text[:40]} is too large")
    return number
