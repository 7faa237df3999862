"""Limits on connections, over a real server."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.edge.attacker import SEGMENT_HEAD, STUDY_HEAD, Attacker, attacking, is_closed, is_cut_off, read
from tests.needs import ROOT, needs
from tests.serving import serving

from crosswind.api.edge.edge import network
from crosswind.api.edge.limits import Limits
from crosswind.data.schema.errors import InvalidInputError

LIMITS = {
    "connections": 12,
    "client_connections": 8,
    "reserved_connections": 4,
    "head_seconds": 1,
    "idle_seconds": 1,
    "body_bytes_a_second": 100_000,
    "spooled_bytes": 1_000_000,
}
GET = b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
HALF = STUDY_HEAD + b"Content-Length: 100\r\n\r\n{"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    words = [word for name, value in LIMITS.items() for word in ("--limit", f"{name}={value}")]
    with serving(tmp_path_factory.mktemp("edge"), "--port", "0", *words) as (url, _):
        yield url


@pytest.fixture
def attacker(url: str) -> Iterator[Attacker]:
    with attacking(url) as attacker:
        yield attacker
    time.sleep(0.2)


def test_idle_connections_make_room_for_those_who_ask(attacker: Attacker) -> None:
    idle = [attacker.send(b"") for _ in range(30)]
    assert attacker.ask(GET).status == 200
    assert (is_closed(idle[0]), is_closed(idle[-1], 0.1)) == (True, False)


def test_a_client_with_too_many_requests_is_told_so_and_health_is_answered_still(attacker: Attacker) -> None:
    for _ in range(LIMITS["client_connections"]):
        attacker.send(HALF)
    time.sleep(0.2)
    answer = attacker.ask(GET)
    assert (answer.status, answer.kind, answer.headers["retry-after"]) == (429, "too-many-connections", "5")
    assert (answer.headers["connection"], answer.headers["x-content-type-options"]) == ("close", "nosniff")
    assert attacker.get("/healthz")[0] == 200


def test_health_is_answered_when_the_reserve_is_taken_too(attacker: Attacker) -> None:
    for _ in range(LIMITS["client_connections"]):
        attacker.send(HALF)
    time.sleep(0.2)
    for _ in range(20):
        attacker.send(b"")
    assert attacker.get("/healthz")[0] == 200


def test_a_full_server_says_so_to_further_clients(tmp_path: Path) -> None:
    with serving(tmp_path, "--port", "0", "--limit", "connections=4") as (url, _), attacking(url) as attacker:
        for _ in range(4):
            attacker.send(HALF)
        time.sleep(0.2)
        answer = attacker.ask(GET)
        assert (answer.status, answer.kind, answer.headers["retry-after"]) == (503, "busy", "2")
        assert attacker.get("/healthz")[0] == 200


@needs(ROOT, "connects as another user", unless=os.geteuid() == 0)
def test_users_of_one_machine_are_clients_of_their_own(attacker: Attacker) -> None:
    for _ in range(LIMITS["client_connections"]):
        attacker.send(HALF)
    time.sleep(0.2)
    assert read(attacker.send(GET, user=1001)).status == 401  # no token, but a place
    assert attacker.ask(GET).status == 429


@pytest.mark.parametrize("octets", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_header_fields_that_do_not_come_are_not_waited_for(attacker: Attacker, octets: bytes) -> None:
    began = time.monotonic()
    answer = read(attacker.send(octets))
    assert 0.9 < time.monotonic() - began < 5
    assert answer.status == 408 if octets else answer.body == b""


def test_a_connection_is_not_kept_by_empty_lines(attacker: Attacker) -> None:
    connection = attacker.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert is_cut_off(connection, b"\r\n", pause_seconds=0.2)


@pytest.mark.parametrize(
    "head",
    [STUDY_HEAD + b"Content-Length: 1000000\r\n\r\n", STUDY_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"],
    ids=["length", "chunked"],
)
def test_a_body_that_stalls_is_refused(attacker: Attacker, head: bytes) -> None:
    began = time.monotonic()
    answer = attacker.ask(head + b"1\r\n{\r\n")
    assert (answer.status, answer.kind, answer.headers["retry-after"]) == (408, "too-slow", "5")
    assert time.monotonic() - began < 5


def test_a_body_that_trickles_is_refused(attacker: Attacker) -> None:
    connection = attacker.send(SEGMENT_HEAD + b"Content-Length: 10000000\r\n\r\n")
    connection.settimeout(0.1)
    began, octets = time.monotonic(), b""
    while time.monotonic() - began < 8 and not octets:
        connection.sendall(b"x" * 1000)  # 10 kB/s
        try:
            octets = connection.recv(1 << 16)
        except TimeoutError:
            continue
    assert octets.startswith(b"HTTP/1.1 408")
    assert time.monotonic() - began > 0.9


def test_bodies_have_bounded_room_together_and_the_slowest_gives_way(attacker: Attacker) -> None:
    half = SEGMENT_HEAD + b"Content-Length: 1000000\r\n\r\n" + b"x" * 400_000
    slow = [attacker.send(half) for _ in range(2)]
    refused = attacker.ask(half)
    assert (refused.status, refused.kind, refused.headers["retry-after"]) == (503, "busy", "2")
    for _ in range(9):
        time.sleep(0.25)
        for connection in slow:
            connection.sendall(b"x" * 2000)
    honest = SEGMENT_HEAD + b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000
    assert attacker.ask(honest.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nConnection: close\r\n", 1)).status == 422
    statuses = [read(connection).status for connection in slow]
    assert 503 in statuses


@pytest.mark.parametrize(
    ("octets", "status", "kind"),
    [
        (b"GET /v1/runs?" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414, "address-too-long"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431, "head-too-large"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + (b"X: " + b"y" * 5000 + b"\r\n") * 9, 431, "head-too-large"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 600_000, 431, "head-too-large"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello, this is TLS\r\n\r\n", 400, "malformed"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400, "malformed"),
    ],
    ids=["address", "fields", "bytes", "one field", "TLS", "length"],
)
def test_a_head_beyond_the_limits_is_refused_with_the_reason(
    attacker: Attacker, octets: bytes, status: int, kind: str
) -> None:
    answer = attacker.ask(octets)
    assert (answer.status, answer.kind, answer.headers["connection"]) == (status, kind, "close")


def test_endless_trailers_are_cut_off(attacker: Attacker) -> None:
    connection = attacker.send(STUDY_HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX: ")
    assert is_cut_off(connection, b"y" * 65536)


def test_pipelined_requests_are_answered_up_to_a_number(attacker: Attacker) -> None:
    few = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 9 + GET
    assert attacker.ask(few).body.count(b"HTTP/1.1 200") == 9
    assert attacker.ask(few * 400).body.count(b"HTTP/1.1 200") < 50


@pytest.mark.thorough
def test_who_does_not_read_an_answer_is_cut_off(attacker: Attacker) -> None:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(attacker.address)
    attacker.connections.append(connection)
    connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 12)
    time.sleep(2)
    assert open_connections(attacker) == 2
    deadline = time.monotonic() + 40
    while open_connections(attacker) > 1 and time.monotonic() < deadline:
        time.sleep(1)
    assert open_connections(attacker) == 1


def open_connections(attacker: Attacker) -> int:
    """Return how many connections the server counts, this one among them."""
    answer = attacker.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    [line] = [line for line in answer.body.splitlines() if line.startswith(b"crosswind_http_connections ")]
    return int(line.split()[1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["connection=5"], "limit 'connection': expected one of connections, "),
        (["connections=many"], "limit connections: 'many', expected a whole number"),
        (["connections"], "limit connections: '', expected a whole number"),
        (["head_seconds=0"], "limit head_seconds: 0, expected 1 or more"),
    ],
)
def test_limits_that_are_none_are_refused_by_name(words: list[str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Limits.of(words)


def test_of_ipv6_a_network_is_one_client() -> None:
    assert network("2001:db8::1") == network("2001:db8::ffff") != network("2001:db8:0:1::1")
    assert network("::ffff:192.0.2.1") == network("192.0.2.1") != network("192.0.2.2")
    assert network("fe80::1%eth0") == network("fe80::2%eth0")
