"""The client that saturates a server: it counts whole answers alone, and takes no refusal for one."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from benchmarks.saturated import CONNECTIONS, answers_per_second, request

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"


@contextmanager
def answering(*parts: bytes) -> Iterator[int]:
    """A server that sends these parts, one packet each, for every request; its port."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while connection.recv(1 << 16):
                for part in parts:
                    connection.sendall(part)

    def accept() -> None:
        with suppress(OSError):
            for _ in range(CONNECTIONS):
                threading.Thread(target=serve, args=listening.accept()[:1], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]


@pytest.mark.parametrize("parts", [(WHOLE,), (WHOLE[:20], WHOLE[20:-2], WHOLE[-2:])])
def test_whole_answers_count(parts: tuple[bytes, ...]) -> None:
    with answering(*parts) as port:
        assert answers_per_second(port, [request("GET", "/healthz")], 0.2) > 0


def test_an_answer_that_never_ends_is_none() -> None:
    with answering(WHOLE[:-1]) as port:
        assert answers_per_second(port, [request("GET", "/healthz")], 0.2) == 0


def test_a_refusal_ends_it() -> None:
    with answering(WHOLE.replace(b"200 OK", b"503 Busy")) as port, pytest.raises(SystemExit, match="503 Busy"):
        answers_per_second(port, [request("GET", "/healthz")], 0.2)


def test_a_request_tells_how_long_its_body_is() -> None:
    assert request("POST", "/v1/predictions", b"{}").endswith(b"Content-Length: 2\r\n\r\n{}")
