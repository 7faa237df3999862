"""Stopping a server that has requests in progress."""

import json
import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.serving import serving

from crosswind.data.store.store import Store

BODY = b'{"workload": "gpt"}'


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=10)


def asked(connection: socket.socket, path: str) -> tuple[int, str]:
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return answer_of(connection)


def answer_of(connection: socket.socket) -> tuple[int, str]:
    """Return status and text of an answer, once the connection was closed after it, or its end has come."""
    text = ""
    while piece := connection.recv(65536):
        text += piece.decode()
        if text.endswith("}"):
            break
    return int(text.split()[1]), text


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.thorough)])
def test_requests_in_progress_are_answered_and_new_ones_refused(tmp_path: Path, number: signal.Signals) -> None:
    with Store.open(tmp_path / "store"):
        pass
    with serving(tmp_path / "store") as (url, process), connected(url) as slow, connected(url) as kept:
        assert asked(kept, "/v1/runs")[0] == 200
        head = "POST /v1/predictions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        slow.sendall(f"{head}{len(BODY)}\r\n\r\n".encode() + BODY[:5])
        assert asked(kept, "/healthz")[0] == 200  # so the slow request has begun
        process.send_signal(number)
        status, text = wait_for_refusal(url)
        assert (status, "connection: close" in text.lower(), "retry-after: 5" in text.lower()) == (503, True, True)
        assert json.loads(text.partition("\r\n\r\n")[2])["detail"].startswith("the server stops")
        with connected(url) as another:
            assert asked(another, "/healthz")[0] == 200
        slow.sendall(BODY[5:])
        status, _ = answer_of(slow)
        assert status == 422  # as ever: it names too little
        assert process.wait(timeout=10) == 0


def wait_for_refusal(url: str) -> tuple[int, str]:
    for _ in range(100):
        with connected(url) as another:
            status, text = asked(another, "/v1/runs")
        if status != 200:
            return status, text
    raise AssertionError("it goes on answering")


@pytest.mark.thorough
def test_a_request_that_never_ends_has_five_seconds_and_a_second_signal_none(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store"):
        pass
    for signals in (1, 2):
        with serving(tmp_path / "store") as (url, process), connected(url) as slow:
            slow.sendall(b"POST /v1/predictions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
            with connected(url) as kept:
                assert asked(kept, "/healthz")[0] == 200
            for _ in range(signals):
                process.terminate()
                with connected(url) as another:
                    asked(another, "/healthz")
            assert process.wait(timeout=10 if signals == 1 else 4) == 0
