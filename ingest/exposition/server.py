"""A small HTTP server for Prometheus: `/metrics` and `/healthz`, for this machine or for those who hold a token."""

import gzip
import hmac
import ipaddress
import logging
import os
import socket
import socketserver
import stat
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.ingest.exposition.families import Families
from crosswind.ingest.exposition.freshness import Freshness
from crosswind.ingest.exposition.latest import LatestReading
from crosswind.ingest.exposition.text import Renderer, media_type_for

LOG = logging.getLogger("crosswind.agent")
MOST_AT_ONCE = 8  # connections; another one is closed
WHOLE_SECONDS = 10.0  # for one connection from beginning to end, however busy it keeps
PATIENCE_SECONDS = 5.0  # for a connection that is silent, or does not take its answer
LOOK_SECONDS = 0.5  # between looks at whether to stop
UNIX = "unix:"

Latest = Callable[[], Mapping[str, LatestReading]]
Answer = tuple[int, str, bytes]


def serve(
    listen: str,
    latest: Latest,
    stop: threading.Event,
    token: str | None = None,
    *,
    whole_seconds: float = WHOLE_SECONDS,
) -> threading.Thread:
    """Serve the readings of `latest` on `127.0.0.1:9750`, `[::1]:9750` or `unix:/path` until `stop` is set.

    With a token, `/metrics` requires it as `Authorization: Bearer`, and other addresses may be served too.
    A connection ends after `whole_seconds` at the latest. `/healthz` is 503 when the agent has stopped sweeping.
    The thread listens already when it is returned. `latest` is called on other threads than the agent's.
    Raises: InvalidInputError for an address that makes no sense, or that others can reach without a token;
    UnavailableError when it cannot be bound.
    """
    family, address = _parsed(listen, is_guarded=token is not None)
    try:
        if family == socket.AF_UNIX:
            _clear(Path(str(address)))
        server = _Server(family, address, latest, token=token, whole_seconds=whole_seconds)
    except OSError as error:
        raise UnavailableError(f"metrics.listen {listen}: {error.strerror or error}") from error
    thread = threading.Thread(target=_run, args=(server, stop), name="metrics", daemon=True)
    thread.start()
    return thread


def _run(server: "_Server", stop: threading.Event) -> None:
    with server:
        while not stop.is_set():
            server.handle_request()
            server.look_around()
    if server.address_family == socket.AF_UNIX:
        Path(str(server.server_address)).unlink(missing_ok=True)


def _parsed(listen: str, *, is_guarded: bool) -> tuple[socket.AddressFamily, Any]:
    if listen.startswith(UNIX):
        path = listen.removeprefix(UNIX)
        if not path.startswith("/") or len(os.fsencode(path)) > 100:
            raise InvalidInputError(
                f"metrics.listen {listen!r:.200}: expected unix: and an absolute path, not too long"
            )
        return socket.AF_UNIX, path
    host, mark, port = listen.rpartition(":")
    if not mark or not port.isascii() or not port.isdigit() or not 0 <= int(port[:6]) < 2**16:
        raise InvalidInputError(f"metrics.listen {listen!r:.200}: expected 127.0.0.1:9750, [::1]:9750 or unix:/path")
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]"))
    except ValueError as error:
        raise InvalidInputError(f"metrics.listen {listen!r:.200}: {host!r:.100} is no IP address") from error
    if not (address.is_loopback or is_guarded):
        raise InvalidInputError(
            f"metrics.listen {listen!r:.200}: other machines can reach it: set metrics.token_file, or take 127.0.0.1"
        )
    return socket.AF_INET6 if address.version == 6 else socket.AF_INET, (str(address), int(port))


def _clear(path: Path) -> None:
    """Remove a socket that nobody listens on any more. Raises: UnavailableError when somebody does."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise UnavailableError(f"metrics.listen unix:{path}: something that is no socket is there")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        with suppress(OSError):
            probe.connect(str(path))
            raise UnavailableError(f"metrics.listen unix:{path}: another process serves it")
    path.unlink(missing_ok=True)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 2 * MOST_AT_ONCE
    timeout = LOOK_SECONDS

    def __init__(
        self,
        family: socket.AddressFamily,
        address: Any,
        latest: Latest,
        *,
        token: str | None,
        whole_seconds: float,
    ) -> None:
        self.address_family = family
        self._asked_for = None if token is None else f"Bearer {token}".encode()
        self._renderer = Renderer(Families())
        self._rendering = threading.Lock()
        self._latest = latest
        self._freshness = Freshness(latest)
        self._whole_seconds = whole_seconds
        self._ends: dict[Any, float] = {}  # when each connection must have ended
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(address, _Handler)

    def lets_in(self, path: str, authorization: str) -> bool:
        """Return whether the sender of this header may read the path."""
        if self._asked_for is None or path == "/healthz":
            return True
        return hmac.compare_digest(authorization.encode("utf-8", "surrogateescape"), self._asked_for)

    def answer(self, path: str, accept: str) -> Answer:
        """Return status, media type and body for a path."""
        if path == "/healthz":
            problem = self._freshness.problem()
            return 503 if problem else 200, "text/plain; charset=utf-8", f"{problem or 'ok'}\n".encode()
        if path != "/metrics":
            return 404, "text/plain; charset=utf-8", b"there are /metrics and /healthz\n"
        media_type = media_type_for(accept)
        with self._rendering:
            return 200, media_type, self._renderer.render(dict(self._latest()), media_type)

    def look_around(self) -> None:
        """Cut connections that have lasted too long, and check that the agent still sweeps."""
        for request, end in list(self._ends.items()):
            if time.monotonic() > end:
                with suppress(OSError):  # it has just ended
                    request.shutdown(socket.SHUT_RDWR)
        try:
            self._freshness.look()
        except Exception:
            LOG.debug("metrics: the agent's row cannot be read", exc_info=True)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a thread, or close it when there are too many."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        self._ends[request] = time.monotonic() + self._whole_seconds
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._ends.pop(request, None)
            self._places.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve the connection, and free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._ends.pop(request, None)
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - given by the base class
        """Log a failed connection at debug level: a caller that leaves is enough to fail one."""
        LOG.debug("metrics: a connection failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE_SECONDS
    server: _Server
    server_version = "crosswind"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer /metrics and /healthz."""
        status, media_type, body = self._answer()
        packed = "gzip" in self.headers.get("Accept-Encoding", "").lower()
        body = gzip.compress(body, 3) if packed else body
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        if packed:
            self.send_header("Content-Encoding", "gzip")
        if status == 401:
            self.send_header("WWW-Authenticate", 'Bearer realm="crosswind"')
        self.send_header("Vary", "Accept, Accept-Encoding")
        self.end_headers()
        self.wfile.write(body)

    def _answer(self) -> Answer:
        path = self.path.partition("?")[0]
        if not self.server.lets_in(path, self.headers.get("Authorization", "")):
            return 401, "text/plain; charset=utf-8", b"this is for those who hold the token\n"
        try:
            return self.server.answer(path, self.headers.get("Accept", ""))
        except Exception:
            LOG.exception("metrics: cannot be written")
            return 500, "text/plain; charset=utf-8", b"cannot be written; the agent's log says why\n"

    def address_string(self) -> str:
        """Return the caller's address, which a Unix socket does not have."""
        return str(self.client_address)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's signature
        """Log nothing: a line for every scrape helps nobody."""
