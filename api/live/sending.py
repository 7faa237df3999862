"""Sending to addresses that users name: to public ones alone, unless the server's settings allow others."""

import asyncio
import ipaddress
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Self
from urllib.parse import urlsplit

from crosswind.data.schema.errors import InvalidInputError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
SECONDS = 10.0  # for all of one attempt
HEAD_BYTES = 16 * 1024  # of an answer, of which the first line alone counts
URL_CHARACTERS = 2000
PORTS = {"http": 80, "https": 443}
# Addresses of IPv6 that stand for one of IPv4: the last four bytes are it (NAT64 of RFC 6052 and 8215), or the first
# ones after the prefix (6to4, RFC 3056).
TRANSLATED = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96")))


@dataclass(frozen=True)
class Receiver:
    """The parts of a receiver's URL."""

    scheme: str
    host: str
    port: int
    target: str  # path and query

    @classmethod
    def of(cls, url: str) -> Self:
        """Return the receiver at a URL. Raises: InvalidInputError."""
        expected = "expected https://HOST[:PORT]/PATH in ASCII, without user, password and fragment"
        try:
            parts = urlsplit(url)
            port = parts.port or PORTS[parts.scheme]
        except (ValueError, KeyError) as error:
            raise InvalidInputError(f"url {url!r:.200}: {expected}") from error
        is_plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= URL_CHARACTERS
        if not (is_plain and parts.hostname) or "@" in parts.netloc or "#" in url or "\\" in url:
            raise InvalidInputError(f"url {url!r:.200}: {expected}")
        return cls(parts.scheme, parts.hostname, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))

    @property
    def host_field(self) -> str:
        """The field `Host` of a request."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True)
class Attempt:
    """The outcome of sending: the status of the answer, or why there was none."""

    status: int | None
    error: str | None
    seconds: float = 0.0

    @property
    def is_delivered(self) -> bool:
        """Return whether the receiver took it."""
        return self.status is not None and 200 <= self.status < 300


class RefusedAddressError(Exception):
    """The receiver is where this server sends nothing."""


def refusal(address: str, allowed: Sequence[Network] = ()) -> str | None:
    """Return why nothing is sent to an address; None where that may be: it is public, or in an allowed network."""
    one = _plain(ipaddress.ip_address(address.partition("%")[0]))
    if any(one in network for network in allowed):
        return None
    if one.is_global and not one.is_multicast and not one.is_reserved:
        return None
    return f"{one} is no public address: the server's administrator may allow it with `serve --webhook-network`"


def _plain(address: Address) -> Address:
    """Return the address of IPv4 that one of IPv6 stands for, or itself."""
    if address.version == 4:
        return address
    if inner := address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]:
        return inner
    if any(address in network for network in TRANSLATED) and int(address) > 1:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


async def send(receiver: Receiver, body: bytes, fields: Mapping[str, str], allowed: Sequence[Network]) -> Attempt:
    """POST a body of JSON and return what came of it; redirects are not followed, and an answer's body is not read."""
    began = time.monotonic()
    status: int | None = None
    error: str | None = None
    try:
        async with asyncio.timeout(SECONDS):
            status = await _post(receiver, body, fields, allowed)
    except TimeoutError:
        error = f"no answer within {SECONDS:g} s"
    except RefusedAddressError as refused:
        error = str(refused)
    except (OSError, ValueError, asyncio.IncompleteReadError) as failed:
        error = f"{getattr(failed, 'strerror', None) or failed or type(failed).__name__!s}"[:200]
    else:
        error = None if 200 <= status < 300 else f"status {status}, expected 200 to 299"
    return Attempt(status, error, time.monotonic() - began)


async def _post(receiver: Receiver, body: bytes, fields: Mapping[str, str], allowed: Sequence[Network]) -> int:
    address = await _address(receiver, allowed)
    tls = {"ssl": _tls(), "server_hostname": receiver.host} if receiver.scheme == "https" else {}
    reader, writer = await asyncio.open_connection(address, receiver.port, limit=HEAD_BYTES, **tls)  # type: ignore[arg-type]
    try:
        if reason := refusal(writer.get_extra_info("peername")[0], allowed):
            raise RefusedAddressError(reason)
        writer.write(_head(receiver, body, fields) + body)
        await writer.drain()
        return _status(await reader.readline())
    finally:
        writer.transport.abort() if receiver.scheme == "http" else writer.close()


async def _address(receiver: Receiver, allowed: Sequence[Network]) -> str:
    """Return the address to connect to, and to no other: a second look-up could answer differently.

    Raises: RefusedAddressError, OSError.
    """
    resolved = await asyncio.get_running_loop().getaddrinfo(receiver.host, receiver.port, type=1)  # SOCK_STREAM
    address = str(resolved[0][4][0])
    if reason := refusal(address, allowed):
        raise RefusedAddressError(reason)
    if receiver.scheme == "http" and refusal(address) is None:
        raise RefusedAddressError("expected https: what is sent in the clear over the Internet may be read by others")
    return address


def _head(receiver: Receiver, body: bytes, fields: Mapping[str, str]) -> bytes:
    own = {"Host": receiver.host_field, "Content-Type": "application/json", "Content-Length": str(len(body))}
    all_fields = {**own, "User-Agent": "crosswind-webhooks", "Connection": "close", **fields}
    lines = [f"POST {receiver.target} HTTP/1.1", *(f"{name}: {value}" for name, value in all_fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _status(line: bytes) -> int:
    """Return the status in the first line of an answer. Raises: ValueError."""
    words = line.split(maxsplit=2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ValueError("the receiver answered something else than HTTP/1.1")
    return int(words[1])


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
