"""Checks that every request passes before a route: prefix, host, origin, token, size and shape of the body."""

import base64
import binascii
import hmac
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from anyio import CapacityLimiter, fail_after
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.problems import (
    FORBIDDEN,
    MALFORMED,
    MEDIA_TYPE,
    SLOW,
    TOO_LARGE,
    UNAUTHORIZED,
    Kind,
    problem,
    shown,
)
from crosswind.api.settings import ServerSettings
from crosswind.api.wire import is_plain
from crosswind.data.schema.errors import MalformedError

DEPTH = 32
DRAINED = 8  # times the limit that is read at most
CUT_OFF = (TOO_LARGE, SLOW)
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN_PATHS = ("/healthz", "/problems/")  # answered without a token
CHALLENGE = 'Bearer realm="crosswind", Basic realm="crosswind"'


class Prefix:
    """Tells the application below which path a proxy shows it, whether or not the proxy cuts that path off."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self.app = app
        self.root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on with its root path set."""
        if scope["type"] == "http" and self.root_path:
            path = self.root_path + inner_path(scope["path"], self.root_path)
            scope = {**scope, "root_path": self.root_path, "path": path}
        await self.app(scope, receive, send)


class Authentication:
    """Refuses requests that call the server by a strange name, come from another site, or lack the token."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app = app
        self.settings = settings
        self._known = settings.host_names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or answers with a problem."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        root_path, headers = scope.get("root_path", ""), Headers(scope=scope)
        if refusal := self._strange(scope["method"], headers):
            await problem(FORBIDDEN, refusal, root_path=root_path)(scope, receive, send)
        elif not self._is_let_in(inner_path(scope["path"], root_path), headers):
            detail = "this server is for those who hold its token"
            answer = problem(UNAUTHORIZED, detail, root_path=root_path, headers={"WWW-Authenticate": CHALLENGE})
            await answer(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _strange(self, method: str, headers: Headers) -> str | None:
        """Why the request does not look as if this site's own users sent it, or None.

        A page elsewhere may have its own name resolve to our address (DNS rebinding), or send a form here.
        """
        host = host_name(headers.get("host", ""))
        hosts = self._known
        if hosts is not None and host not in hosts:
            return f"host {shown(host)} is not one of {', '.join(sorted(hosts))}"
        origin = headers.get("origin")
        if origin is None or method in SAFE_METHODS:
            return None
        caller = host_name(urlsplit(origin).netloc) if origin != "null" else origin
        if caller == host or caller in {name.lower() for name in self.settings.hosts}:
            return None
        return f"origin {shown(origin)} is another site than {shown(host)}"

    def _is_let_in(self, path: str, headers: Headers) -> bool:
        if self.settings.token is None or path == OPEN_PATHS[0] or path.startswith(OPEN_PATHS[1]):
            return True
        given = credentials(headers.get("authorization", ""))
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.settings.token.encode())


@dataclass(frozen=True)
class BodyRule:
    """Limits on a route's body: the media types, the size, what `check` lets pass, and how many at once."""

    media_type: str  # or several: with commas between them
    limit_bytes: int
    check: Callable[[bytes], None]
    at_once: float = math.inf
    seconds: float = math.inf  # that a sender may take for it


NO_RULES: Mapping[str, BodyRule] = MappingProxyType({})


class BodyCheck:
    """Reads the body of a request by the rule of its path, and refuses what the rule does not allow.

    By default that is plain, finite, shallow JSON of at most `limit_bytes`; `rules` tell other paths.
    """

    def __init__(self, app: ASGIApp, limit_bytes: int, rules: Mapping[str, BodyRule] = NO_RULES) -> None:
        self.app = app
        json_rule = BodyRule("application/json", limit_bytes, check_json)
        self._default = json_rule, _limiter(json_rule)
        self._rules = {path: (rule, _limiter(rule)) for path, rule in rules.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on with its whole body, or answers with a problem."""
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
    """None lets any number in, which costs every request less than a limiter without a limit."""
    return None if math.isinf(rule.at_once) else CapacityLimiter(rule.at_once)


async def _read_in_time(receive: Receive, rule: BodyRule) -> bytes | None:
    """As `_read`. Raises: TimeoutError."""
    if math.isinf(rule.seconds):
        return await _read(receive, rule)
    with fail_after(rule.seconds):
        return await _read(receive, rule)


async def _read(receive: Receive, rule: BodyRule) -> bytes | None:
    """The body, or what shows that it is too large, or None when the client went away.

    Of a body that is too large some more is read and thrown away: many clients listen only once all is sent.
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
    """Gives out a body that was already read, then whatever the client sends next."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


def inner_path(path: str, root_path: str) -> str:
    """The path without the proxy's prefix."""
    return path[len(root_path) :] if root_path and path.startswith(f"{root_path}/") else path


def host_name(host: str) -> str:
    """The name in a Host header: lower case, no port; an IPv6 address keeps its brackets."""
    name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
    return name.lower().rstrip(".")


def credentials(authorization: str) -> str:
    """The token in an Authorization header: after Bearer, or the password of Basic, which browsers ask for."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def check_json(body: bytes) -> None:
    """Refuses a body as `checked_json` does. Raises: MalformedError."""
    checked_json(body)


def checked_json(body: bytes) -> object:
    """Return what a body says that is a JSON text of finite numbers, whole Unicode and at most DEPTH levels.

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
            if isinstance(text, str) and not is_plain(text):
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
