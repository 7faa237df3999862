"""Receivers of webhooks on this machine."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """An address and what came to it; `answer` says by the number of a request which status it gets."""

    url: str
    answer: Callable[[int], int]
    bodies: list[bytes] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def said(self) -> list[Any]:
        """The messages."""
        return [json.loads(body) for body in self.bodies]

    def take(self, headers: Mapping[str, str], body: bytes) -> int:
        """Keep a message; return the status of its answer."""
        with self.lock:
            self.headers.append(headers)
            self.bodies.append(body)
            return self.answer(len(self.bodies))


@contextmanager
def receiving(answer: Callable[[int], int] = lambda _: 204) -> Iterator[Receiver]:
    """Yield a receiver over HTTP on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take({name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"{receiver.url}elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(f"http://127.0.0.1:{server.server_port}/", answer)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
