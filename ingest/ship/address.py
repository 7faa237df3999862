"""The address of a server, and the way to it: directly, over a Unix socket, or through an HTTP proxy."""

import base64
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from crosswind.data.schema.errors import InvalidInputError

CA_FILE = "CROSSWIND_CA_FILE"
FORMS = "expected http://HOST:PORT, https://HOST or unix:///PATH"
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


def way_to(url: str, ca_file: str | None = None) -> Way:
    """Return the way to `http://`, `https://`, `unix:///PATH` or `http+unix://%2FPATH`.

    The environment's http_proxy, https_proxy and no_proxy count, but never for this machine itself. `ca_file`, else
    $CROSSWIND_CA_FILE, has certificates of authorities that are trusted besides those of this machine.
    Raises: InvalidInputError.
    """
    parts = _split(url)
    if socket_path := _socket_of(parts):
        return Way(lambda: UnixConnection(socket_path), parts.path.rstrip("/") if parts.netloc else "")
    trusted = _trusted(ca_file or os.environ.get(CA_FILE)) if parts.scheme == "https" else None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme)
    host = parts.hostname or ""
    if not proxy or _is_loopback(host) or proxy_bypass(f"{host}:{_port(parts)}", proxies):
        return Way(lambda: _connection(host, _port(parts), trusted), parts.path.rstrip("/"))
    return _by_proxy(parts, urlsplit(proxy if "://" in proxy else f"http://{proxy}"), trusted)


def _by_proxy(parts: SplitResult, proxy: SplitResult, trusted: ssl.SSLContext | None) -> Way:
    if proxy.scheme != "http" or not proxy.hostname:
        raise InvalidInputError(f"proxy {proxy.scheme}://{proxy.hostname}: expected http://HOST:PORT")
    host, port, proxy_host, proxy_port = parts.hostname or "", _port(parts), proxy.hostname, _port(proxy)
    credentials = _credentials(proxy)
    if parts.scheme == "http":
        prefix = f"http://{parts.netloc}{parts.path.rstrip('/')}"
        return Way(lambda: _connection(proxy_host, proxy_port, None), prefix, credentials)

    def tunnel() -> HTTPConnection:
        connection = _connection(proxy_host, proxy_port, trusted)
        connection.set_tunnel(host, port, headers=dict(credentials))
        return connection

    return Way(tunnel, parts.path.rstrip("/"))


def _connection(host: str, port: int, trusted: ssl.SSLContext | None) -> HTTPConnection:
    if trusted is None:
        return HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
    return HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=trusted)


def _trusted(ca_file: str | None) -> ssl.SSLContext:
    """Return what a certificate is checked by. Raises: InvalidInputError."""
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:  # of which SSLError is one
            reason = error.strerror or error
            raise InvalidInputError(f"CA file {ca_file}: expected certificates in PEM: {reason}") from error
    return context


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in PORTS and parts.hostname and (parts.port or 1)
    except ValueError:
        is_known, parts = False, SplitResult("", "", "", "", "")
    if not (is_known or _socket_of(parts)) or parts.username is not None or parts.query or parts.fragment:
        raise InvalidInputError(f"server {url!r:.200}: {FORMS}")
    return parts


def _socket_of(parts: SplitResult) -> str | None:
    """Return the path of the Unix socket that an address names."""
    path = {"unix": "" if parts.netloc else parts.path, "http+unix": unquote(parts.netloc)}.get(parts.scheme, "")
    return path if Path(path).is_absolute() else None


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
