"""The credentials that a request brings in its header fields."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

TOKEN_HEADER = b"x-crosswind-token"  # for clients behind proxies that keep Authorization for themselves
COOKIE = "crosswind_session"
PROXY_FIELDS = frozenset({b"forwarded", b"via", b"x-real-ip"})
PROXY_PREFIX = b"x-forwarded-"


@dataclass(frozen=True)
class Credentials:
    """A token, a browser's session, the user whom a proxy names, and whether a proxy passed the request on."""

    token: str | None
    session: str | None
    named_user: str | None
    is_forwarded: bool

    @classmethod
    def of(cls, fields: Iterable[tuple[bytes, bytes]], user_header: bytes | None = None) -> "Credentials":
        """Return the credentials in header fields whose names are lower case.

        A field that is given twice counts as one with both values, which is no valid credential.
        """
        wanted = {TOKEN_HEADER, b"authorization", b"cookie", user_header}
        given: dict[bytes, bytes] = {}
        is_forwarded = False
        for name, value in fields:
            if name in wanted:
                given[name] = given[name] + b", " + value if name in given else value
            is_forwarded = is_forwarded or name in PROXY_FIELDS or name.startswith(PROXY_PREFIX)
        return cls(_token(given), _session(given), _text(given.get(user_header or b"")), is_forwarded)


def _token(given: dict[bytes, bytes]) -> str | None:
    own = _text(given.get(TOKEN_HEADER))
    if own is not None:
        return own.strip()
    authorization = _text(given.get(b"authorization"))
    return None if authorization is None else token_of(authorization)


def token_of(authorization: str) -> str | None:
    """Return the token in an Authorization field: after Bearer, or the password of Basic; None in other schemes."""
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return text.strip()
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(text, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _session(given: dict[bytes, bytes]) -> str | None:
    if COOKIE.encode() not in (text := given.get(b"cookie", b"")):
        return None
    try:
        cookie = SimpleCookie(text.decode("latin-1").replace(", ", "; ")).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
