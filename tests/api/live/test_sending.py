"""Sending to addresses that users name: never to this machine or its networks, whatever the name says."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_network

import pytest
from tests.api.live.receiving import receiving

from crosswind.api.live import sending
from crosswind.api.live.sending import Attempt, Network, Receiver, refusal, send

LOOPBACK = (ip_network("127.0.0.0/8"),)


def attempt(url: str, allowed: tuple[Network, ...] = ()) -> Attempt:
    return asyncio.run(send(Receiver.of(url), b"{}", {}, allowed))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.9.1",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert "no public address" in (refusal(address) or "")


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946"])
def test_a_public_address_is_not(address: str) -> None:
    assert refusal(address) is None


def test_an_allowed_network_is_allowed_and_no_other() -> None:
    allowed = (ip_network("10.1.0.0/16"), ip_network("fd00::/8"))
    assert refusal("10.1.2.3", allowed) is None
    assert refusal("::ffff:10.1.2.3", allowed) is None
    assert refusal("fd00::1", allowed) is None
    assert refusal("10.2.0.1", allowed) is not None


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_however_loopback_is_written_nothing_gets_there(host: str) -> None:
    with receiving() as receiver:
        port = receiver.url.rsplit(":", 1)[1].strip("/")
        made = attempt(f"http://{host}:{port}/")
        assert made.status is None
        assert made.error is not None
        assert receiver.bodies == []


def test_a_name_that_is_public_at_first_and_loopback_then_leads_to_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that changes its answer between a check and a connection: there is one question alone."""
    asked: list[str] = []
    answers = iter(["93.184.216.34", "127.0.0.1", "127.0.0.1"])

    def resolve(host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        if host != "rebinding.example":
            return real(host, port, *_, **__)  # type: ignore[arg-type]
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    connected: list[str] = []

    async def connect(address: str, _port: int, **_: object) -> None:
        connected.append(address)
        raise ConnectionRefusedError("nobody there")

    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(asyncio, "open_connection", connect)
    made = attempt("https://rebinding.example/")
    assert (asked, connected, made.status) == (["rebinding.example"], ["93.184.216.34"], None)
    made = attempt("https://rebinding.example/")
    assert connected == ["93.184.216.34"]
    assert "no public address" in (made.error or "")


def test_where_the_connection_leads_elsewhere_than_it_was_made_to_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with receiving() as receiver:
        port = int(receiver.url.rsplit(":", 1)[1].strip("/"))
        real = asyncio.open_connection

        async def diverted(_address: str, _port: int, **_: object) -> object:
            return await real("127.0.0.1", port)

        monkeypatch.setattr(asyncio, "open_connection", diverted)
        monkeypatch.setattr(sending, "_address", lambda *_: _resolved("93.184.216.34"))
        made = attempt("http://example.org/")
        assert "127.0.0.1 is no public address" in (made.error or "")
        assert receiver.bodies == []


async def _resolved(address: str) -> str:
    return address


def test_nothing_goes_to_a_public_address_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert "expected https" in (attempt("http://example.org/").error or "")


@contextmanager
def talking(say: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield the URL of a receiver that does what a function says with its one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                say(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join(timeout=10)


def test_a_receiver_that_answers_drop_by_drop_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "SECONDS", 0.5)

    def drip(connection: socket.socket) -> None:
        for _ in range(40):
            try:
                connection.sendall(b"H")
            except OSError:
                return
            time.sleep(0.05)

    with talking(drip) as url:
        began = time.monotonic()
        made = attempt(url, LOOPBACK)
        assert made.error == "no answer within 0.5 s"
        assert time.monotonic() - began < 2


@pytest.mark.parametrize("answer", [b"x" * 100_000, b"nonsense\r\n", b"HTTP/1.1 abc\r\n", b"", b"SSH-2.0-x\r\n"])
def test_an_answer_that_is_none_is_a_failure(answer: bytes) -> None:
    def say(connection: socket.socket) -> None:
        connection.sendall(answer)

    with talking(say) as url:
        made = attempt(url, LOOPBACK)
        assert made.status is None
        assert made.error
        assert "\n" not in made.error
        assert len(made.error) <= 200


def test_a_header_of_the_answer_is_not_waited_for() -> None:
    def say(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        time.sleep(0.3)

    with talking(say) as url:
        assert attempt(url, LOOPBACK).is_delivered
