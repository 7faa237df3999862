"""Requests that a server answers a second on one core, asked from another core by several connections at once."""

import os
import selectors
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path

CONNECTIONS = 8
HEAD_END = b"\r\n\r\n"


def answers_per_second(
    port: int, requests: Sequence[bytes], seconds: float, *, connections: int = CONNECTIONS
) -> float:
    """The requests over and over, each connection with one on its way. Raises: SystemExit for an answer but 200."""
    following, answered = cycle(requests), 0
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(connections):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            selector.register(connection, selectors.EVENT_READ, bytearray())
            connection.sendall(next(following))
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            for key, _ in selector.select(1.0):
                connection, buffer = key.fileobj, key.data
                assert isinstance(connection, socket.socket)
                buffer += connection.recv(1 << 16)
                if _is_whole(buffer):
                    buffer.clear()
                    answered += 1
                    connection.sendall(next(following))
        return answered / (time.perf_counter() - began)


def _is_whole(buffer: bytearray) -> bool:
    head, end, body = bytes(buffer).partition(HEAD_END)
    if not end:
        return False
    if not head.startswith(b"HTTP/1.1 200 "):
        raise SystemExit(f"answered {bytes(buffer[:300])!r}")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return len(body) >= int(length.partition(b":")[2])


def request(method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """A request as it goes over the wire; a body is JSON unless `headers` say otherwise."""
    of_body = {"Content-Type": "application/json", "Content-Length": str(len(body))} if body else {}
    lines = "".join(f"{name}: {value}\r\n" for name, value in (of_body | dict(headers or {})).items())
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}\r\n".encode() + body


@contextmanager
def cores_apart(pid: int) -> Iterator[bool]:
    """The process with all its threads on the last core that there is, this one on the others; false with one core."""
    allowed = os.sched_getaffinity(0)
    threads = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    last = {max(allowed)}
    if len(allowed) < 2:
        yield False
        return
    try:
        for thread in threads:
            os.sched_setaffinity(thread, last)
        os.sched_setaffinity(0, allowed - last)
        yield True
    finally:
        for thread in [0, *threads]:
            os.sched_setaffinity(thread, allowed)
