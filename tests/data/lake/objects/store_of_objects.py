"""An S3 server in a process of its own, and a proxy in front of it that has faults."""

import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.conftest import free_port

from crosswind.data.schema.lake_address import LakeAddress

SERVER = "from moto.server import main; main()"
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"}
REGION = "us-east-1"
UNAVAILABLE = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


@contextmanager
def s3_server() -> Iterator[int]:
    """Yield the port of a server that holds nothing yet."""
    port = free_port()
    command = [sys.executable, "-c", SERVER, "-H", "127.0.0.1", "-p", str(port)]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **silent, env={**os.environ, **KEYS})
    try:
        _wait(port)
        yield port
    finally:
        process.kill()
        process.wait()


def _wait(port: int) -> None:
    for _ in range(600):
        try:
            asked(port, "GET", "/")
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("the S3 server does not answer")


def asked(port: int, method: str, path: str) -> bytes:
    """Return the answer to a request without a signature."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path)
        return connection.getresponse().read()
    finally:
        connection.close()


def address_of(port: int, bucket: str, *, cache_bytes: int = 10**9, prefix: str = "lake") -> LakeAddress:
    """Return the address of a bucket on loopback."""
    endpoint = f"127.0.0.1:{port}"
    return LakeAddress(bucket, prefix, REGION, endpoint, "http", "testing", "testing", cache_bytes)


def setting_of(address: LakeAddress) -> str:
    """Return an address as CROSSWIND_LAKE has it."""
    keys = f"{address.access_key}:{address.secret_key}@" if address.access_key else ""
    options = f"region={address.region}&scheme={address.scheme}&endpoint_override={address.endpoint}"
    return f"s3://{keys}{address.bucket}/{address.prefix}?{options}"


@dataclass
class Faults:
    """The proxy's faults: `act` returns whether it answered a request itself, or ended its connection."""

    act: Callable[["Proxied"], bool] = lambda _: False
    log: list[str] = field(default_factory=list)
    passed: int = 0


@dataclass
class Proxied:
    """A request at the proxy."""

    handler: "_Handler"
    method: str
    path: str
    body: bytes

    @property
    def is_write(self) -> bool:
        """Return whether it writes an object or a part of one."""
        return self.method in ("PUT", "POST")

    def busy(self) -> bool:
        """Answer 503."""
        return self.say(503, UNAVAILABLE)

    def say(self, status: int, body: bytes, **headers: str) -> bool:
        """Answer this."""
        self.handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Content-Type": "application/xml", **headers}.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        if self.method != "HEAD":
            self.handler.wfile.write(body)
        return True

    def cut_off(self) -> bool:
        """End the connection without an answer."""
        self.handler.close_connection = True
        return True

    def half(self) -> bool:
        """Answer with half of the body, and end the connection."""
        status, headers, body = self.handler.forwarded(self.method, self.path, self.body)
        self.handler.send_response(status)
        for name, value in headers:
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(body[: len(body) // 2])
        return self.cut_off()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def _do(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Expect") == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        body = self._chunks() if "chunked" in self.headers.get("Transfer-Encoding", "") else self.rfile.read(size)
        faults: Faults = self.server.faults
        faults.log.append(f"{self.command} {self.path}")
        if faults.act(Proxied(self, self.command, self.path, body)):
            return
        faults.passed += 1
        status, headers, answer = self.forwarded(self.command, self.path, body)
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _do  # noqa: N815 - as http.server names them

    def _chunks(self) -> bytes:
        content = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return content

    def forwarded(self, method: str, path: str, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Return the answer of the server behind."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=30)
        own = ("transfer-encoding", "connection", "expect", "content-length")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in own}
        connection.request(method, path, body=body, headers={**headers, "Content-Length": str(len(body))})
        answer = connection.getresponse()
        content = answer.read()
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in own[:2]]
        if not any(name.lower() == "content-length" for name, _ in kept):
            kept.append(("Content-Length", str(len(content))))
        connection.close()
        return answer.status, kept, content

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def faulty_proxy(behind: int) -> Iterator[tuple[int, Faults]]:
    """Yield the port of a proxy before a server, and what it does to requests."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.behind, server.faults, server.daemon_threads = behind, Faults(), True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, server.faults
    finally:
        server.shutdown()
        server.server_close()
