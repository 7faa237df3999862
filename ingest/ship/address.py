"""The address of a server, and the way to it: directly, over a Unix socket, or through an HTTP proxy."""

import base64
import ipaddress
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from crosswind.data.schema.errors import InvalidInputError

TIMEOUT_SECONDS = 60.0  # of one read or write; a busy server first stores, then answers
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Way:
    """The way to a server: how to connect, the prefix of a request's path, and the headers of every request."""

    connect: Callable[[], HTTPConnection]
    prefix: str
    headers: Mapping[str, str] = field(default_factory=dict)


class UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connects. Raises: OSError."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def way_to(url: str) -> Way:
    """Return the way to `http://`, `https://` or `unix:///PATH`.

    The environment's http_proxy, https_proxy and no_proxy count, but never for this machine itself.
    Raises: InvalidInputError.
    """
    parts = _split(url)
    if parts.scheme == "unix":
        return Way(lambda: UnixConnection(parts.path), "")
    proxies = getproxies()
    proxy = proxies.get(parts.scheme)
    host = parts.hostname or ""
    if not proxy or _is_loopback(host) or proxy_bypass(f"{host}:{_port(parts)}", proxies):
        return Way(lambda: _connection(parts.scheme, host, _port(parts)), parts.path.rstrip("/"))
    return _by_proxy(parts, urlsplit(proxy if "://" in proxy else f"http://{proxy}"))


def _by_proxy(parts: SplitResult, proxy: SplitResult) -> Way:
    if proxy.scheme != "http" or not proxy.hostname:
        raise InvalidInputError(f"proxy {proxy.scheme}://{proxy.hostname}: expected http://HOST:PORT")
    host, port, proxy_host, proxy_port = parts.hostname or "", _port(parts), proxy.hostname, _port(proxy)
    credentials = _credentials(proxy)
    if parts.scheme == "http":
        prefix = f"http://{parts.netloc}{parts.path.rstrip('/')}"
        return Way(lambda: _connection("http", proxy_host, proxy_port), prefix, credentials)

    def tunnel() -> HTTPConnection:
        connection = _connection("https", proxy_host, proxy_port)
        connection.set_tunnel(host, port, headers=dict(credentials))
        return connection

    return Way(tunnel, parts.path.rstrip("/"))


def _connection(scheme: str, host: str, port: int) -> HTTPConnection:
    kind = HTTPSConnection if scheme == "https" else HTTPConnection
    return kind(host, port, timeout=TIMEOUT_SECONDS)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in PORTS and parts.hostname and (parts.port or 1)
    except ValueError:
        is_known, parts = False, SplitResult("", "", "", "", "")
    is_socket = parts.scheme == "unix" and not parts.netloc and Path(parts.path).is_absolute()
    if not (is_known or is_socket) or parts.username is not None or parts.query or parts.fragment:
        raise InvalidInputError(f"server {url!r:.200}: expected http://HOST:PORT, https://HOST or unix:///PATH")
    return parts


def _port(parts: SplitResult) -> int:
    return parts.port or PORTS[parts.scheme]


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _credentials(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
