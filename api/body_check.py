"""Checks of a request's body: media type, size, and shape of JSON."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.cross_site import SAFE_METHODS
from crosswind.api.edge.spool import MEMORY_BYTES, Body, Spool
from crosswind.api.prefix import inner_path
from crosswind.api.problems import BUSY, MALFORMED, MEDIA_TYPE, TOO_LARGE, Kind, problem, shown
from crosswind.api.wire import is_storable
from crosswind.data.schema.errors import MalformedError, UnavailableError

DEPTH = 32
Check = Callable[[bytes], None]
AT_ONCE = 4  # large bodies in memory and checked: in threads, as a check may take some time


@dataclass(frozen=True)
class BodyRule:
    """Limits on a route's body: media types, size, a `check` of it, how many large ones are in memory at once.

    Bodies of up to `small_bytes` are not among those; of them `small_at_once` are, where they did not arrive in memory.
    """

    media_type: str  # or several: with commas between them
    limit_bytes: int
    check: Check | None = None
    at_once: int = AT_ONCE
    small_bytes: int = MEMORY_BYTES
    small_at_once: int = AT_ONCE


class _Places:
    """A rule, and the places in memory for bodies that did not arrive there."""

    def __init__(self, rule: BodyRule) -> None:
        self.rule = rule
        self._small, self._large = CapacityLimiter(rule.small_at_once), CapacityLimiter(rule.at_once)

    def of(self, size: int) -> CapacityLimiter:
        """Return the places for a body of so many bytes."""
        return self._small if size <= self.rule.small_bytes else self._large


NO_RULES: Mapping[str, BodyRule] = MappingProxyType({})
Refusal = tuple[Kind, str] | None


class BodyCheck:
    """Reads the body of a request by the rule of its path, and refuses a body that breaks it.

    The default rule is plain, finite, shallow JSON of at most `limit_bytes`; `rules` are those of other paths. A large
    body counts as one of those at once when it is whole, so that slow senders hold up nobody.
    """

    def __init__(self, app: ASGIApp, limit_bytes: int, spool: Spool, rules: Mapping[str, BodyRule] = NO_RULES) -> None:
        self.app = app
        self.spool = spool
        json_rule = BodyRule("application/json", limit_bytes, check_json)
        self._default = _Places(json_rule)
        self._rules = {path: _Places(rule) for path, rule in rules.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its whole body, or answer with a problem."""
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self.app(scope, receive, send)
            return
        places = self._rules.get(inner_path(scope["path"], scope.get("root_path", "")), self._default)
        rule = places.rule
        with Body(self.spool) as body:
            try:
                await self.spool.read(body, receive, rule.limit_bytes)
            except UnavailableError as error:
                await _refuse((BUSY, str(error)), scope, receive, send)
                return
            if not body.is_whole:
                return
            refusal = _refusal(body, Headers(scope=scope).get("content-type", ""), rule)
            if refusal:
                await _refuse(refusal, scope, receive, send)
            elif body.size <= MEMORY_BYTES:
                await self._pass(scope, receive, send, content=body.content(), check=rule.check)
            else:
                async with places.of(body.size):
                    content = await run_sync(body.content)
                    await self._pass(scope, receive, send, content=content, check=rule.check)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, *, content: bytes, check: Check | None) -> None:
        refusal = None
        if content and check is not None:
            is_large = len(content) > MEMORY_BYTES
            refusal = await run_sync(_broken, check, content) if is_large else _broken(check, content)
        if refusal:
            await _refuse(refusal, scope, receive, send)
        else:
            await self.app(scope, Replay(content, receive), send)


async def _refuse(refusal: tuple[Kind, str], scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"Connection": "close"} if refusal[0] in (TOO_LARGE, BUSY) else {}  # the rest is not read any more
    await problem(*refusal, root_path=scope.get("root_path", ""), headers=headers)(scope, receive, send)


def _refusal(body: Body, content_type: str, rule: BodyRule) -> Refusal:
    if body.size > rule.limit_bytes:
        return TOO_LARGE, f"body: expected at most {rule.limit_bytes} bytes"
    if body.size and content_type.partition(";")[0].strip().lower() not in rule.media_type.split(", "):
        return MEDIA_TYPE, f"content type {shown(content_type)}: expected {rule.media_type}"
    return None


def _broken(check: Check, content: bytes) -> Refusal:
    try:
        check(content)
    except MalformedError as error:
        return MALFORMED, str(error)
    return None


class Replay:
    """Receives a body that was already read, then the next messages of the client."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        """Return the body, and later what the client sends."""
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
