"""A server on a socket that does to one request after another what a list says."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # linger 0 s


@dataclass
class Does:
    """Its way with a request: what it sends, how slowly, and how the connection ends."""

    sends: bytes = b""
    seconds_a_byte: float = 0.0
    resets: bool = False
    closes: bool = False


def answer(status: int, body: str = '{"runs": []}', **fields: str) -> Does:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{lines}\r\n"
    return Does(head.encode() + body.encode())


@dataclass
class Faulty:
    """Its address, the requests that came, and how many connections there were."""

    url: str
    script: list[Does]
    requests: list[str] = field(default_factory=list)
    connections: int = 0
    arrived: list[float] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)
    open_ones: list[socket.socket] = field(default_factory=list)

    def fields(self, name: str) -> list[str]:
        """Return the values of a header field, in the order of the requests."""
        wanted = f"\n{name.lower()}: "
        return [head.lower().partition(wanted)[2].partition("\r")[0] for head in self.requests]

    def accept(self, listener: socket.socket) -> None:
        """Serve every connection in a thread of its own."""
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self.connections += 1
                self.open_ones.append(connection)
                self.threads.append(threading.Thread(target=self._serve, args=(connection,)))
                self.threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while head := _request(connection):
                self.requests.append(head)
                self.arrived.append(time.monotonic())
                does = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                _send(connection, does, self.is_over)
                if does.resets:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                if does.resets or does.closes:
                    return


@contextmanager
def faulty(*script: Does, listening: socket.socket | None = None, url: str = "") -> Iterator[Faulty]:
    """Yield a server that does the last of these again and again."""
    with listening or socket.create_server(("127.0.0.1", 0)) as listener:
        server = Faulty(url or f"http://127.0.0.1:{listener.getsockname()[1]}", list(script))
        accepting = threading.Thread(target=server.accept, args=(listener,))
        accepting.start()
        try:
            yield server
        finally:
            server.is_over.set()
            for one in (listener, *server.open_ones):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            for thread in (accepting, *server.threads):
                thread.join(timeout=10)


def _request(connection: socket.socket) -> str:
    """Return the head of the next request once its body has come; empty at the end."""
    content = b""
    while b"\r\n\r\n" not in content:
        if not (part := connection.recv(65536)):
            return ""
        content += part
    head, _, body = content.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
    while len(body) < int(length or 0):
        body += connection.recv(65536)
    return head.decode() + "\r\n"


def _send(connection: socket.socket, does: Does, is_over: threading.Event) -> None:
    if not does.seconds_a_byte:
        connection.sendall(does.sends)
        return
    for number in range(len(does.sends)):
        connection.sendall(does.sends[number : number + 1])
        if is_over.wait(does.seconds_a_byte):
            return
